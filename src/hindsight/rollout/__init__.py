"""Policy times environment gives episodes, in this process or in others."""
