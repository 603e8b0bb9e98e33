"""Commands of click, made from records: with shared options, and with options that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import icefield
from click.core import ParameterSource

from icefield_cli import completions
from icefield_cli.context import FILES, OUTPUTS, Context
from icefield_cli.hookspecs import KINDS, Argument, Command, Option, WrongUsage
from icefield_cli.kinds import PARSERS

if TYPE_CHECKING:
    from icefield import PluginInfo

_WIDTH = 110
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH}
_TYPES: dict[str, click.ParamType[Any]] = {
    "string": click.STRING,
    "integer": click.INT,
    "id": click.INT,
    "number": click.FLOAT,
}


class RenderedCommand(click.Command):
    """A command of ``icefield``, which takes the shared options before its own help."""

    def __init__(self, record: Command, plugin: PluginInfo) -> None:
        first, _, more = record.help.partition("\n")
        super().__init__(
            record.name,
            context_settings=SETTINGS,
            callback=_callback(record, plugin),
            params=[*(_parameter(each, plugin) for each in record.parameters), *shared_options()],
            help=f"{first}\n{more}",
            short_help=first,
        )
        self._record = record

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and raise click's error of wrong usage where options exclude each other."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:  # a shell asks for completions
            return rest
        form = ctx.ensure_object(Context).form
        if form in FILES and not self._record.prints_rows:
            raise click.UsageError(f"'--output {form}' is for rows of tables; give text, json or jsonl", ctx)
        given = {name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE}
        for names in self._record.exclusive:
            both = [name for name in names if name in given]
            if len(both) > 1:
                raise click.UsageError(f"{self._spelt(both[:2], ' and ')} exclude each other; give one", ctx)
        for name, others in self._record.goes_with.items():
            if name in given and given.isdisjoint(others):
                raise click.UsageError(f"{self._spelt([name], '')} goes with {self._spelt(others, ' or ')}", ctx)
        needs = self._record.needs
        if needs and all(ctx.params[name] is None for name in needs):
            raise click.UsageError(f"one of {self._spelt(needs, ', ')} is needed", ctx)
        return rest

    def _spelt(self, names: Sequence[str], between: str) -> str:
        shown = {
            each.name: each.opts[0] if isinstance(each, click.Option) else str(each.name).upper()
            for each in self.params
        }
        return between.join(f"'{shown[name]}'" for name in names)


def _callback(record: Command, plugin: PluginInfo) -> Callable[..., None]:
    """The function that imports the target of a command and calls it."""

    def called(**parameters: Any) -> None:
        run = icefield.Plugins.load(plugin, record.target, f"command '{record.name}'")
        context = click.get_current_context()
        try:
            run(context.find_object(Context), **parameters)
        except WrongUsage as error:
            raise click.UsageError(str(error), context) from None

    return called


def _parameter(given: Argument | Option, plugin: PluginInfo) -> click.Parameter:
    if isinstance(given, Argument):
        metavar = given.metavar or (given.name.upper() if given.is_required else f"[{given.name.upper()}]")
        complete = completions.of(given.name)
        return click.Argument([given.name], metavar=metavar, required=given.is_required, shell_complete=complete)
    names = [*given.spelt, given.name]
    if given.kind == "flag":
        turned_off = given.default is True
        return click.Option(names, is_flag=True, flag_value=not turned_off, default=turned_off, help=given.help)
    more: dict[str, Any] = {}
    if given.without_value is not None:
        more = {"is_flag": False, "flag_value": given.without_value}
    if given.kind == "names" or given.default is not None:
        more["default"] = given.default or ""
    return click.Option(
        names,
        type=_type(given, plugin),
        metavar=given.metavar or KINDS.get(given.kind),
        multiple=given.is_repeatable,
        required=given.is_required,
        help=given.help,
        **more,
    )


def _type(given: Option, plugin: PluginInfo) -> click.ParamType[Any]:
    if given.choices:
        return click.Choice(given.choices)
    if given.bounds is not None:
        return click.IntRange(*given.bounds)
    if given.kind in _TYPES:
        return _TYPES[given.kind]
    if given.kind in PARSERS:
        return Parsed(given.kind)
    return Parsed(given.kind, partial(icefield.Plugins.load, plugin, given.kind, f"option '{given.name}'"))


class Parsed(click.ParamType):  # type: ignore[type-arg]  # older versions of click lack one
    """The type of an option with a function of its own, which raises ``ValueError``.

    ``load`` imports the function of a kind that is not one of ``PARSERS``.
    """

    def __init__(self, kind: str, load: Callable[[], Callable[[str], Any]] | None = None) -> None:
        self.name = kind
        self._load = load or partial(PARSERS.__getitem__, kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a string; a default that is a value already stays."""
        if not isinstance(value, str):
            return value
        parse = self._load()
        try:
            return parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def shared_options() -> list[click.Parameter]:
    """The options of every command; they may also come before the command, and the later one takes precedence."""
    return [
        click.Option(
            ["--catalog"],
            metavar="NAME",
            help="A configured catalog; default: default-catalog of icefield.toml.",
            expose_value=False,
            callback=_catalog,
        ),
        click.Option(
            ["--output"],
            type=click.Choice(OUTPUTS),
            help="The form of what is printed; default: text. Rows may be csv or parquet.",
            expose_value=False,
            callback=_output,
        ),
        click.Option(
            ["--no-pager"],
            is_flag=True,
            help="Print long tables on a terminal at once, without a pager.",
            expose_value=False,
            callback=_no_pager,
        ),
        click.Option(
            ["--property", "-p"],
            metavar="KEY=VALUE",
            type=Parsed("pair"),
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
        ctx.ensure_object(Context).form = value


def through_pager(parts: Iterable[str], *, color: bool) -> None:
    """Print text through ``$PAGER``."""
    click.echo_via_pager(parts, color=color)


def _no_pager(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.ensure_object(Context).pager = False


def _properties(ctx: click.Context, parameter: click.Parameter, value: Sequence[tuple[str, str]]) -> None:
    ctx.ensure_object(Context).catalog_properties.update(value)
