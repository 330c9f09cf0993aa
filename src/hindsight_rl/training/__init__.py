"""Training: episodes are stored, updates follow, policies are evaluated."""
