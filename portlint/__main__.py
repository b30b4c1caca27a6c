"""`python -m portlint` is the same as the `portlint` command."""

from portlint.cli import main

if __name__ == "__main__":
    main()
