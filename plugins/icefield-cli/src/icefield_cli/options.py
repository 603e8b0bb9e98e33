"""How commands are declared: on click, with the options that all share, and with options that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import MappingProxyType
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from icefield.expressions import AlwaysTrue, BooleanExpression

from icefield_cli.context import Context

Function = TypeVar("Function", bound=Callable[..., Any])
Decorator = Callable[[Function], Function]

_WIDTH = 110
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH}


class Command(click.Command):
    """A command of ``icefield``, which takes the shared options before its own help."""

    def __init__(
        self,
        name: str | None,
        exclusive: Sequence[Sequence[str]] = (),
        needs: Sequence[str] = (),
        goes_with: Mapping[str, Sequence[str]] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        """``exclusive``: groups of parameters that exclude each other; ``needs``: at least one of these is required.

        ``goes_with``: maps a parameter to parameters; it requires at least one of them.
        """
        super().__init__(name, **{**more, "context_settings": SETTINGS})
        self.params.extend(shared_options())
        self._exclusive, self._needs, self._goes_with = exclusive, needs, goes_with

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and raise click's error of wrong usage where options exclude each other."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:  # a shell asks for completions
            return rest
        given = {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        for names in self._exclusive:
            both = [name for name in names if name in given]
            if len(both) > 1:
                raise click.UsageError(f"{self._spelt(both[:2], ' and ')} exclude each other; give one", ctx)
        for name, others in self._goes_with.items():
            if name in given and given.isdisjoint(others):
                raise click.UsageError(f"{self._spelt([name], '')} goes with {self._spelt(others, ' or ')}", ctx)
        if self._needs and all(ctx.params[name] is None for name in self._needs):
            raise click.UsageError(f"one of {self._spelt(self._needs, ', ')} is needed", ctx)
        return rest

    def _spelt(self, names: Sequence[str], between: str) -> str:
        options = {parameter.name: parameter.opts[0] for parameter in self.params}
        return between.join(f"'{options[name]}'" for name in names)


def command(
    name: str,
    text: str | None,
    *,
    exclusive: Sequence[Sequence[str]] = (),
    needs: Sequence[str] = (),
    goes_with: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Callable[[Callable[..., None]], click.Command]:
    """Make a command of a function of the ``Context`` and of the parameters that decorators below it declare.

    ``text`` is its help, the first line for the list of commands.
    """

    def made(function: Callable[..., None]) -> click.Command:
        def called(*given: Any, **parameters: Any) -> None:
            function(click.get_current_context().find_object(Context), *given, **parameters)

        first, _, more = (text or "").partition("\n")
        create = click.command(
            name,
            cls=Command,
            help=f"{first}\n{more}",
            short_help=first,
            exclusive=exclusive,
            needs=needs,
            goes_with=goes_with,
        )
        return create(update_wrapper(called, function))

    return made


def shared_options() -> list[click.Parameter]:
    """The options of every command; they may stand before the command too, and the later one goes first."""
    return [
        click.Option(
            ["--catalog"],
            metavar="NAME",
            help="The catalog, as it is configured; default: default.",
            expose_value=False,
            callback=_catalog,
        ),
        click.Option(
            ["--output"],
            type=click.Choice(["text", "json"]),
            help="The form of what is printed; default: text.",
            expose_value=False,
            callback=_output,
        ),
        click.Option(
            ["--property", "-p"],
            metavar="KEY=VALUE",
            type=pair,
            multiple=True,
            help="A property of the catalog; repeatable.",
            expose_value=False,
            callback=_properties,
        ),
    ]


def _catalog(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Context).catalog_name = value


def _output(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Context).json = value == "json"


def _properties(ctx: click.Context, parameter: click.Parameter, value: Sequence[tuple[str, str]]) -> None:
    ctx.ensure_object(Context).catalog_properties.update(value)


def table_argument(function: Function) -> Function:
    """The table that a command is about."""
    declared: Function = click.argument("table", metavar="TABLE")(function)
    return declared


def where_option(text: str) -> Decorator[Any]:
    """A filter in Icefield's form."""
    return click.option("--where", metavar="FILTER", help=text)


def filter_of(where: str | None) -> BooleanExpression | str:
    """Return the filter of ``where``: every row if it was not given. The kernel refuses an empty filter."""
    return AlwaysTrue() if where is None else where


def names_option(option: str, text: str, *more: str) -> Decorator[Any]:
    """Names separated by commas."""
    return click.option(option, *more, metavar="NAMES", type=names, default="", help=text)


def id_option(option: str, text: str, *more: str, multiple: bool = False) -> Decorator[Any]:
    """The id of a snapshot, or of something else that has one."""
    return click.option(option, *more, type=int, metavar="ID", multiple=multiple, help=text)


def flag(option: str, text: str, *more: str) -> Decorator[Any]:
    """An option without a value."""
    return click.option(option, *more, is_flag=True, help=text)


def pairs_option(option: str, text: str, *more: str, metavar: str = "KEY=VALUE") -> Decorator[Any]:
    """Keys and values; repeatable."""
    return click.option(option, *more, metavar=metavar, type=pair, multiple=True, help=text)


def branch_option(function: Function) -> Function:
    """The branch that is changed."""
    declared: Function = click.option("--branch", default="main", metavar="NAME", help="The branch; default: main.")(
        function
    )
    return declared


def snapshot_property_option(function: Function) -> Function:
    """Declare properties that a commit adds to the summary of its snapshot."""
    text = "A property of the snapshot's summary; repeatable."
    declared: Function = pairs_option("--snapshot-property", text, "snapshot_properties")(function)
    return declared


def dry_run_option(function: Function) -> Function:
    """Declare ``dry_run``, which only reports the changes that a run would make."""
    declared: Function = flag("--dry-run", "Change nothing, and say what would be done.")(function)
    return declared


def pair(given: str) -> tuple[str, str]:
    """Split ``KEY=VALUE``. Raises click's error of wrong usage."""
    key, equals, value = given.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"'{given}' is no KEY=VALUE")
    return key, value


def count(given: str) -> int:
    """A number that is not negative. Raises click's error of wrong usage."""
    try:
        number = int(given)
    except ValueError:
        number = -1
    if number < 0:
        raise click.BadParameter(f"'{given}' is no number from 0 on")
    return number


def names(given: str) -> tuple[str, ...]:
    """Split names at commas."""
    return tuple(name.strip() for name in given.split(",")) if given else ()
