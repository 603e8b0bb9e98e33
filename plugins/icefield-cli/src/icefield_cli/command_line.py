"""The commands of ``icefield``: arguments read, a command run, errors stated in one line."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click
import icefield
from click.shell_completion import shell_complete
from icefield.errors import IcefieldError, MissingPlugin
from icefield.toolkit import without_credentials

from icefield_cli.context import Context
from icefield_cli.hookspecs import Command
from icefield_cli.main import print_error
from icefield_cli.output import clean
from icefield_cli.rendering import SETTINGS, RenderedCommand, shared_options

if TYPE_CHECKING:
    from icefield import PluginInfo

_COMPLETE = "_ICEFIELD_COMPLETE"
_EPILOG = """\b
A catalog is named by --catalog and described by icefield.toml, by the environment
(ICEFIELD_CATALOG__<NAME>__<PROPERTY>) or by --property. Exit status: 0, 1 for an error, 2 for wrong usage.
ICEFIELD_DEBUG=1 shows where an error came from."""


_Provided = dict[str, list[tuple["PluginInfo", Command]]]


class Commands(click.Group):
    """The commands that plugins provide. The target of a command is imported when the command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the help."""
        return list(_commands_of(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, for the help and for a shell."""
        found = _commands_of(ctx).get(cmd_name)
        return None if found is None else RenderedCommand(found[0][1], found[0][0])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names. Raises click's error of wrong usage, with the nearest names.

        Raises ``MissingPlugin`` for a command that can be installed, ``PluginConflict`` for one of several plugins.
        The option ``--property`` before the command may prefer a plugin.
        """
        name = args[0]
        if name[:1] == "-" or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        plugins = icefield.Plugins.configured(ctx.ensure_object(Context).catalog_properties)
        try:
            plugin, command = plugins.chosen("icefield_commands", Command, name, "command")
        except MissingPlugin:
            if plugins.requirements("commands", name):
                raise
            near = " or ".join(f"'{each}'" for each in get_close_matches(name, provided_commands()))
            raise click.UsageError(f"no command '{name}'{f'; did you mean {near}?' if near else ''}", ctx) from None
        return name, RenderedCommand(command, plugin), args[1:]


def _commands_of(ctx: click.Context) -> _Provided:
    """The commands by name, gathered once for the help of all."""
    found: _Provided = ctx.meta.get(__name__) or provided_commands()
    ctx.meta[__name__] = found
    return found


def provided_commands() -> _Provided:
    """The commands by name, each with its plugin: first those of this plugin, then the plugins in order of names."""
    found: _Provided = {}
    records = icefield.Plugins.installed().records("icefield_commands", Command)
    for plugin, command in sorted(records, key=lambda each: (each[0].name != "cli", each[0].name)):
        found.setdefault(command.name, []).append((plugin, command))
    return found


def run(arguments: Sequence[str] | None) -> int:
    """Run a command; return the exit status: 0, 1 for an error, 2 for wrong usage."""
    _print_anything()
    if arguments is None:
        _watched_output()
        arguments = sys.argv[1:]
        if asked := os.environ.get(_COMPLETE):  # by a shell, which completes a line
            return shell_complete(GROUP, {}, "icefield", _COMPLETE, asked)
    context = Context()
    try:
        # click's own main() is not used, since it handles interrupts and closed pipes differently.
        # Commands show progress themselves.
        with icefield.progress(False), GROUP.make_context("icefield", list(arguments), obj=context) as parsed:
            GROUP.invoke(parsed)
        sys.stdout.flush()  # here, where a failure can be met with grace
    except KeyboardInterrupt:
        print_error(context.listener.interrupted())
        _drop_output()
        return 130
    except click.exceptions.Exit as done:  # the help or the version was asked for
        if isinstance(failure := _output_failure(), OSError):
            return _without_output(failure)
        raise SystemExit(done.exit_code) from None
    except click.ClickException as error:
        _wrong_usage(error)
        raise SystemExit(error.exit_code) from None
    except IcefieldError as error:
        return _failed(_said(error), context)
    except Exception as error:
        failure = _output_failure()
        if failure is not None:
            return _without_output(failure)
        # A bug, here or in a plugin: still one line.
        return _failed(
            f"{type(error).__name__}: {_said(error)} (unexpected; ICEFIELD_DEBUG=1 shows where it came from)", context
        )
    return 0


def _said(error: Exception) -> str:
    """The message of an error, and its notes."""
    notes = getattr(error, "__notes__", ())
    return ". ".join([str(error).rstrip("."), *notes]) if notes else str(error)


def _wrong_usage(error: click.ClickException) -> None:
    """Print the usage and the error in the arguments to the standard error."""
    context = getattr(error, "ctx", None)
    if context is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"{context.get_usage()}\nTry '{context.command_path} --help'.", file=sys.stderr)
    print_error(clean(" ".join(error.format_message().split())))


class _Output(io.FileIO):
    """The standard output, which keeps its first error: Python raises it once, in an arbitrary call of ``print``."""

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
    """Flush the standard output; return the error of this or an earlier write, or None."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return error
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _Output) else None


def _without_output(failure: OSError) -> int:
    """Drop an output that cannot be written any more; a pipe that its reader has closed is no error."""
    _drop_output()
    if isinstance(failure, BrokenPipeError):
        return 0
    print_error(f"the output cannot be written: {failure.strerror}")
    return 1


def _print_anything() -> None:
    """Escape characters that the terminal's encoding lacks, so that every string of a table can be printed."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Discard buffered output, so that Python reports no error when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):  # not a real file, or a closed one
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(message: str, context: Context) -> int:
    properties = _properties(context)
    if os.environ.get("ICEFIELD_DEBUG"):
        print(without_credentials(traceback.format_exc(), properties), end="", file=sys.stderr)
    print_error(clean(" ".join(without_credentials(message, properties).split())))
    if _output_failure() is not None:
        _drop_output()
    return 1


def _properties(context: Context) -> dict[str, str]:
    """Return the properties of the catalog: no error message may print the credentials in them."""
    with contextlib.suppress(IcefieldError):
        return context.all_properties()
    return context.catalog_properties


def _version_option() -> click.Parameter:
    def show(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value and not ctx.resilient_parsing:
            print(f"icefield {icefield.__version__}")
            ctx.exit()

    return click.Option(
        ["--version"], is_flag=True, is_eager=True, expose_value=False, callback=show, help="Show the version and exit."
    )


GROUP = Commands(
    "icefield",
    params=[*shared_options(), _version_option()],
    help="Look at Apache Iceberg tables, and look after them.",
    epilog=_EPILOG,
    context_settings=SETTINGS,
)
