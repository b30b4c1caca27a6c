"""`portlint server`: findings in an editor, as you type."""

from __future__ import annotations

from importlib.util import find_spec

import click

from portlint.cli.errors import UserError, friendly


@click.command(short_help="Serve an editor over the Language Server Protocol.")
@friendly
def server() -> None:
    """Serve an editor over standard input and output, by the Language Server Protocol.

    Targets come from the initialization option `targets`, or from the configuration beside the file.
    """
    if find_spec("pygls") is None:
        raise UserError("the language server needs pygls: pip install 'portlint[lsp]'")
    from portlint.server import serve

    serve()
