"""Packages that exist for one vendor only."""
