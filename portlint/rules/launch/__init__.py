"""Launch configurations of kernels."""
