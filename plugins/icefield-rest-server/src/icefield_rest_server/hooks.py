"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import hookimpl

if TYPE_CHECKING:
    from icefield_cli import Command


@hookimpl(optionalhook=True)
def icefield_commands() -> Sequence[Command]:
    """Provide ``icefield serve``."""
    from icefield_cli import Command, Option

    return [
        Command(
            "serve",
            "Serve the catalog by the Iceberg REST catalog protocol, until the process is stopped.",
            "icefield_rest_server.command:run",
            (
                Option("host", "Where to listen; default: 127.0.0.1.", metavar="ADDRESS", default="127.0.0.1"),
                Option("port", "Default: 8181.", kind="integer", bounds=(0, 65535), metavar="NUMBER", default=8181),
                Option(
                    "workers", "Processes; default: 1.", kind="integer", bounds=(1, 64), metavar="NUMBER", default=1
                ),
                Option("tokens", "Bearer tokens that are let in: a name and a token in each line.", metavar="FILE"),
                Option("jwks", "The keys of an issuer of tokens (JWT); with --issuer and --audience.", metavar="URL"),
                Option("issuer", "Who must have issued a token.", metavar="NAME"),
                Option("audience", "Whom a token must be for.", metavar="NAME"),
                Option("credentials", "JSON: the properties that clients get for files, by prefix.", metavar="FILE"),
                Option("certificate", "The certificate, for TLS; with --key.", metavar="FILE"),
                Option("key", "The certificate's private key.", metavar="FILE"),
            ),
        )
    ]
