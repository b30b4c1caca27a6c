"""Precision and rounding."""
