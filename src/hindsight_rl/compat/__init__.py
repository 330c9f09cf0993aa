"""Adapters for code that was written for SB3 or cpprb: change one import."""
