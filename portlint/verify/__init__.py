"""Evidence for findings: what a compiler, an interpreter or a device makes of the code."""
