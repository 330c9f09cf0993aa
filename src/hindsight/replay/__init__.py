"""Where steps are kept and retold: NumPy and Numba only, importable without torch."""
