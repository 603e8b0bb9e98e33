"""The console script ``icefield``."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from icefield import IcefieldError, __version__
from icefield.config import catalog_properties, default_catalog_name
from icefield.credentials import without_credentials

from icefield_cli.commands import COMMANDS
from icefield_cli.context import Context, pair
from icefield_cli.output import clean

_EPILOG = """A catalog is named by --catalog and described by icefield.toml, by the environment
(ICEFIELD_CATALOG__<NAME>__<PROPERTY>) or by --property. Exit status: 0, 1 for an error, 2 for wrong usage.
ICEFIELD_DEBUG=1 shows where an error came from."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 1 for an error, 2 for wrong usage."""
    given = build_parser().parse_args(arguments)
    _print_anything()
    try:
        given.run(Context(given), given)
        sys.stdout.flush()  # here, where a closed pipe can be met with grace
    except BrokenPipeError:  # the reader of a pipe has seen enough
        _drop_output()
        return 0
    except KeyboardInterrupt:
        print("icefield: interrupted", file=sys.stderr)
        return 130
    except IcefieldError as error:
        return _failed(str(error), given)
    except Exception as error:  # a bug, here or in a plugin: still one line
        return _failed(
            f"{type(error).__name__}: {error} (unexpected; ICEFIELD_DEBUG=1 shows where it came from)", given
        )
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser, with one sub-parser a command. The shared options may stand before the command or after it."""
    parser = argparse.ArgumentParser(
        prog="icefield", description="Look at Apache Iceberg tables, and look after them.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=f"icefield {__version__}")
    _add_shared(parser, "before_")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        text = (command.__doc__ or "").strip()
        made = commands.add_parser(command.NAME, help=text.splitlines()[0], description=text, epilog=_EPILOG)
        _add_shared(made, "")
        command.arguments(made)
        made.set_defaults(run=command.run)
    return parser


def _add_shared(parser: Any, prefix: str) -> None:
    shared = parser.add_argument_group("options of every command")
    shared.add_argument(
        "--catalog", dest=f"{prefix}catalog", metavar="NAME", help="the catalog, as it is configured; default: default"
    )
    shared.add_argument(
        "--output",
        dest=f"{prefix}output",
        choices=("text", "json"),
        help="the form of what is printed; default: text",
    )
    shared.add_argument(
        "--property",
        "-p",
        dest=f"{prefix}property",
        metavar="KEY=VALUE",
        type=pair,
        action="append",
        default=[],
        help="a property of the catalog; repeatable",
    )


def _print_anything() -> None:
    """Let no character of a table fail to print, whatever the terminal's encoding."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Send what is still buffered nowhere, so that Python does not complain when it ends."""
    with contextlib.suppress(OSError, ValueError):  # no real file, or one that is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(message: str, given: argparse.Namespace) -> int:
    properties = _properties(given)
    if os.environ.get("ICEFIELD_DEBUG"):
        print(without_credentials(traceback.format_exc(), properties), end="", file=sys.stderr)
    print(f"icefield: {clean(' '.join(without_credentials(message, properties).split()))}", file=sys.stderr)
    return 1


def _properties(given: argparse.Namespace) -> dict[str, str]:
    """Those of the catalog: whatever an error says, their credentials are not printed."""
    context = Context(given)
    with contextlib.suppress(IcefieldError):
        return catalog_properties(context.catalog_name or default_catalog_name(), context.catalog_properties)
    return context.catalog_properties


if __name__ == "__main__":
    sys.exit(main())
