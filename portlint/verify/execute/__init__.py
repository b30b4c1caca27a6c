"""Runs a Python file that the user names, on a device that is pretended, and reports what the target would not do.

The file runs in a process of its own, with an interpreter of the user's choice. What runs there is in `child/`: it
needs the standard library and the framework that the file brings, and gets what it knows of the target as JSON.
"""
