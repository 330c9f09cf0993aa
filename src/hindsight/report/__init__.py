"""What a run's folder tells, as a page to look at. It reads files alone."""
