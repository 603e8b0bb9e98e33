"""The commands of ``icefield``: arguments read, a command run, errors stated in one line."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from icefield import IcefieldError, __version__, catalog_properties, default_catalog_name
from icefield.toolkit import without_credentials

from icefield_cli.commands import COMMANDS
from icefield_cli.context import Context, pair
from icefield_cli.main import print_error
from icefield_cli.output import clean

_EPILOG = """A catalog is named by --catalog and described by icefield.toml, by the environment
(ICEFIELD_CATALOG__<NAME>__<PROPERTY>) or by --property. Exit status: 0, 1 for an error, 2 for wrong usage.
ICEFIELD_DEBUG=1 shows where an error came from."""


def run(arguments: Sequence[str] | None) -> int:
    """Run a command; return the exit status: 0, 1 for an error, 2 for wrong usage."""
    _print_anything()
    if arguments is None:
        _watched_output()
    try:
        given = build_parser().parse_args(arguments)
    except SystemExit:  # the help was asked for, or the usage is wrong
        if isinstance(failure := _output_failure(), OSError):
            raise SystemExit(_without_output(failure)) from None
        raise
    context = Context(given)
    try:
        given.run(context, given)
        sys.stdout.flush()  # here, where a failure can be met with grace
    except KeyboardInterrupt:
        print_error(context.listener.interrupted())
        _drop_output()
        return 130
    except IcefieldError as error:
        return _failed(str(error), given)
    except Exception as error:
        failure = _output_failure()
        if failure is not None:
            return _without_output(failure)
        # A bug, here or in a plugin: still one line.
        return _failed(
            f"{type(error).__name__}: {error} (unexpected; ICEFIELD_DEBUG=1 shows where it came from)", given
        )
    return 0


class _Output(io.FileIO):
    """The standard output, which remembers that it failed: Python states it once, to whoever happens to print."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = self.failure or error
            raise


def _watched_output() -> None:
    """Watch the standard output of this process."""
    old = sys.stdout
    output = _Output(old.fileno(), "wb", closefd=False)
    line_buffering = old.isatty()
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(output), old.encoding, "backslashreplace", None, line_buffering)


def _output_failure() -> OSError | None:
    """Why what was printed does not arrive, if it does not."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _Output) else None


def _without_output(failure: OSError) -> int:
    """Take leave of an output that takes no more: quietly where the reader of a pipe has seen enough."""
    _drop_output()
    if isinstance(failure, BrokenPipeError):
        return 0
    print_error(f"the output cannot be written: {failure.strerror}")
    return 1


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
    """Send what is still buffered nowhere, so that Python does not print_error when it ends."""
    with contextlib.suppress(OSError, ValueError):  # no real file, or one that is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(message: str, given: argparse.Namespace) -> int:
    properties = _properties(given)
    if os.environ.get("ICEFIELD_DEBUG"):
        print(without_credentials(traceback.format_exc(), properties), end="", file=sys.stderr)
    print_error(clean(" ".join(without_credentials(message, properties).split())))
    if _output_failure() is not None:
        _drop_output()
    return 1


def _properties(given: argparse.Namespace) -> dict[str, str]:
    """Those of the catalog: whatever an error says, their credentials are not printed."""
    context = Context(given)
    with contextlib.suppress(IcefieldError):
        return catalog_properties(context.catalog_name or default_catalog_name(), context.catalog_properties)
    return context.catalog_properties
