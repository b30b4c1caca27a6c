"""`python -m portlint` is the same as the `portlint` command."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]  # what is linted may lie there, and is not to be imported

from portlint.cli import main

if __name__ == "__main__":
    main()
