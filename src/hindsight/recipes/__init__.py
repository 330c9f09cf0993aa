"""Tuned settings per environment family, as TOML."""
