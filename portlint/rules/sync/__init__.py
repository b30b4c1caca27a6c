"""Reads of device values on the host."""
