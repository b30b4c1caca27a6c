"""portlint: the porting linter for accelerator code.

A rule finds an assumption in source code, a target states facts, a finding is an assumption that a fact contradicts.
`docs/architecture.md` shows the way through the modules.
"""

__version__ = "0.1.0"
