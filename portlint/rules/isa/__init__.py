"""Instruction sets: inline assembly, instruction families, architecture gates."""
