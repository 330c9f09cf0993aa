"""The replay buffer. NumPy and Numba only: importable without torch."""
