"""Warp and wavefront: width, lane masks, reductions."""
