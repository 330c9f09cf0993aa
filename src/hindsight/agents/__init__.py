"""What learns and what acts. Importing this folder loads no torch; an agent's own file does."""
