"""The hooks of this plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from icefield import Provider, hookimpl

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
                Option("port", "Default: 8181.", kind="integer", bounds=(1, 65535), metavar="NUMBER", default=8181),
                Option(
                    "workers", "Processes; default: 1.", kind="integer", bounds=(1, 64), metavar="NUMBER", default=1
                ),
                Option("authenticator", "Authenticates clients: tokens, jwt, or a plugin's.", metavar="NAME"),
                Option("authorizer", "Decides what clients may do: read-only, or a plugin's.", metavar="NAME"),
                Option("read_only", "Refuse every change of the catalog and its tables.", kind="flag"),
                Option("vendor", "Gives credentials for files: static, sts, or a plugin's.", metavar="NAME"),
                Option("tokens", "Bearer tokens that are let in: a name and a token in each line.", metavar="FILE"),
                Option("jwks", "The keys of an issuer of tokens (JWT); with --issuer and --audience.", metavar="URL"),
                Option("issuer", "The issuer that a token must have.", metavar="NAME"),
                Option("audience", "The audience that a token must have.", metavar="NAME"),
                Option("credentials", "JSON: the properties that clients get for files, by prefix.", metavar="FILE"),
                Option("certificate", "The certificate, for TLS; with --key.", metavar="FILE"),
                Option("key", "The certificate's private key.", metavar="FILE"),
                Option("ui", "Serve pages for people, too: those of plugins, such as icefield-explorer.", kind="flag"),
            ),
        )
    ]


@hookimpl
def icefield_addhooks() -> list[str]:
    """Specify the hooks of the server."""
    return ["icefield_rest_server.hookspecs"]


@hookimpl
def icefield_authenticators() -> list[Provider]:
    """Provide authenticators of clients, by name."""
    return [
        Provider("tokens", "icefield_rest_server.providers:static_tokens"),
        Provider("jwt", "icefield_rest_server.providers:jwt_tokens"),
    ]


@hookimpl
def icefield_authorizers() -> list[Provider]:
    """Provide authorizers of requests, by name."""
    return [Provider("read-only", "icefield_rest_server.providers:read_only")]


@hookimpl
def icefield_credential_vendors() -> list[Provider]:
    """Provide vendors of credentials, by name."""
    return [
        Provider("static", "icefield_rest_server.providers:static_credentials"),
        Provider("sts", "icefield_rest_server.providers:sts_credentials"),
    ]
