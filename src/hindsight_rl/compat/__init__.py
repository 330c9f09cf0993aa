"""Faces for other people's code: change one import."""
