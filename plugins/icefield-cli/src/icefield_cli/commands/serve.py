"""Serve the catalog by the Iceberg REST catalog protocol, until the process is stopped."""

from __future__ import annotations

import sys
from importlib import import_module

import click
from icefield.errors import UnsupportedFeature

from icefield_cli.context import Context
from icefield_cli.options import command


@command("serve", __doc__)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; default: 127.0.0.1.")
@click.option("--port", default=8181, type=click.IntRange(0, 65_535), metavar="NUMBER", help="Default: 8181.")
@click.option("--workers", default=1, type=click.IntRange(1, 64), metavar="NUMBER", help="Processes; default: 1.")
@click.option("--tokens", metavar="FILE", help="Bearer tokens that are let in: a name and a token in each line.")
@click.option("--jwks", metavar="URL", help="The keys of an issuer of tokens (JWT); with --issuer and --audience.")
@click.option("--issuer", metavar="NAME", help="Who must have issued a token.")
@click.option("--audience", metavar="NAME", help="Whom a token must be for.")
@click.option("--credentials", metavar="FILE", help="JSON: the properties that clients get for files, by prefix.")
@click.option("--certificate", metavar="FILE", help="The certificate, for TLS; with --key.")
@click.option("--key", metavar="FILE", help="The certificate's private key.")
def run(context: Context, **options: object) -> None:
    """Run the command."""
    try:
        server = import_module("icefield_rest_server")
    except ModuleNotFoundError as error:
        raise UnsupportedFeature('serving needs the extra rest-server; pip install "icefield[rest-server]"') from error
    chosen = server.Options(catalog=context.catalog.name, **options)

    def announce() -> None:
        where = f"{chosen.host}:{chosen.port}"
        context.say(f"serving catalog {context.catalog.name} on {where}", host=chosen.host, port=chosen.port)
        sys.stdout.flush()  # a reader of a file or a pipe need not wait until the server ends

    server.serve(chosen, announce, **context.catalog_properties)
