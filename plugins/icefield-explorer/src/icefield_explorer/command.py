"""Serve pages about the catalog to a browser on this machine, until the process is stopped."""

from __future__ import annotations

import sys

from icefield_cli import Context
from icefield_rest_server import Options, serve


def run(context: Context, port: int) -> None:
    """Run the command."""
    options = Options(catalog=context.catalog.name, port=port, ui=True, protocol=False)

    def announce() -> None:
        address = f"http://{options.host}:{port}/ui/"
        context.say(f"catalog {context.catalog.name} is at {address}", address=address)
        sys.stdout.flush()  # a reader of a file or a pipe need not wait until the server ends

    serve(options, announce, **context.catalog_properties)
