"""Shapes of tiles, the order of their grid, and the memories that hold them, in Pallas and NKI."""
