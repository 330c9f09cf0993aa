"""What the command line does besides `HER`: train, benchmark, doctor, export, play."""
