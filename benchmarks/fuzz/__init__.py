"""Fuzzers: texts that nobody would write, and what has to hold for them all the same."""
