"""The array engine: NumPy or CuPy behind one `xp`."""
