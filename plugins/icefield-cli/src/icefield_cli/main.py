"""The console script ``icefield``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from icefield import IcefieldError, __version__

from icefield_cli.commands import COMMANDS
from icefield_cli.context import Context


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit status: 0, 1 for an error, 2 for wrong usage."""
    parser = build_parser()
    given = parser.parse_args(arguments)
    try:
        given.run(Context(given), given)
    except IcefieldError as error:
        print(f"icefield: {_one_line(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("icefield: interrupted", file=sys.stderr)
        return 130
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser, with one sub-parser a command."""
    parser = argparse.ArgumentParser(prog="icefield", description="Look after Apache Iceberg tables.")
    parser.add_argument("--version", action="version", version=f"icefield {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        summary = (command.__doc__ or "").strip().splitlines()[0]
        made = commands.add_parser(command.NAME, help=summary, description=summary, parents=[_shared()])
        command.arguments(made)
        made.set_defaults(run=command.run)
    return parser


def _shared() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--catalog", metavar="NAME", help="the catalog, as icefield.toml or the environment names it")
    shared.add_argument("--output", choices=("text", "json"), default="text", help="the form of what is printed")
    shared.add_argument(
        "--property",
        "-p",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a property of the catalog; repeatable",
    )
    return shared


def _one_line(error: IcefieldError) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
