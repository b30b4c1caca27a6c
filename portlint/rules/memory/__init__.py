"""Shared memory and other on-chip limits."""
