"""The reference target: NumPy in float64, the meaning of every operator."""
