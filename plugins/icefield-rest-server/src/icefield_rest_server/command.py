"""Serve the catalog by the Iceberg REST catalog protocol, until the process is stopped."""

from __future__ import annotations

import sys
from typing import Any

from icefield_cli import Context

from icefield_rest_server.serving import Options, serve


def run(context: Context, **options: Any) -> None:
    """Run the command."""
    chosen = Options(catalog=context.catalog.name, **options)

    def announce() -> None:
        where = f"{chosen.host}:{chosen.port}"
        context.say(f"serving catalog {context.catalog.name} on {where}", host=chosen.host, port=chosen.port)
        sys.stdout.flush()  # a reader of a file or a pipe need not wait until the server ends

    serve(chosen, announce, **context.catalog_properties)
