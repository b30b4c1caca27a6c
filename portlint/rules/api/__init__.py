"""CUDA's own C++ interfaces: which of them other compilers have."""
