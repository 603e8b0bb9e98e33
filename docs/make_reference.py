"""Write the pages of ``docs/reference`` that follow from the code: table properties, errors and commands.

Run ``make reference``, or this file; a test compares what is committed with what it would write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
from icefield import Plugins, errors
from icefield.errors import IcefieldError
from icefield.metadata import properties
from icefield.metadata.properties import TABLE_PROPERTIES, Property
from icefield_cli.command_line import GROUP
from icefield_cli.rendering import shared_options
from icefield_maintenance import OPERATIONS, OperationOption, options_of

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs/reference"
KIB, MIB = 1 << 10, 1 << 20
_NO_READERS = {"__init__.py", "properties.py", "property_checks.py"}
_GROUP = re.compile(r"# -- (.+?) -+")
_BAR = "\\|"
_TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "true/false"}

_PROPERTIES_HEAD = """# Table properties

Generated from `icefield.metadata.properties` and the properties of the plugins by `make reference`; do not edit.

A property is a string that steers readers and writers of one table. Set it with `create_table(..., properties={...})`,
`table.set_properties({...})` or `icefield properties db.t --set key=value`. A value of the wrong form is refused when
it is set, and so is a codec, a metrics mode or a file format that no engine has; a file format that an extra would
install is accepted. A table of another engine that has such a value already is read and changed all the same.

The properties of a plugin are known where it is installed. A property `write.<format>.x` of a file format has a
counterpart for delete files, `write.delete.<format>.x`, which overrides it there.

"Read by" names the distributions whose code reads the property. "-" means that Icefield checks and keeps it for other
engines, and does nothing with it. A name that ends in a dot is followed by a column's name.

A property that is in no table below is kept as it is. When its name all but spells one that is known, such as
`write.formt.default`, there is a warning, `icefield.metadata.property_checks.PropertyWarning`. Names of credentials
(`secret-access-key`, `password`, ...) are refused: every reader of a table sees its metadata. So are the names that
show state:

{reserved}
"""

_ERRORS_HEAD = """# Errors

Generated from `icefield.errors` by `make reference`; do not edit.

Every error that Icefield raises on purpose is an `IcefieldError` and also the nearest built-in, so that
`except FileNotFoundError` works as well as `except icefield.errors.FileMissing`. Keyword data such as the location or
the table are attributes of the error and are in `error.data`. `error.retryable` says whether trying the same call
again can help. Errors can be pickled.

```python
import icefield
from icefield.errors import IcefieldError, MissingPlugin

try:
    icefield.open_table("unknown-scheme://bucket/t/metadata/v1.metadata.json")
except IcefieldError as error:
    assert isinstance(error, MissingPlugin) and isinstance(error, LookupError)
    assert error.data == {"kind": "file-systems", "name": "unknown-scheme"}
    assert not error.retryable
```

| error | is also a | is a kind of | a retry can help | meaning |
|---|---|---|---|---|
"""

_COMMANDS_HEAD = """# Commands

Generated from the records of commands by `make reference`; do not edit. [The command line](../guide/command-line.md)
shows them at work.

Every command takes these options, before its name or behind it:

"""


_MAINTENANCE_HEAD = """# Maintenance

Generated from the records in `icefield_maintenance.options` by `make reference`; do not
edit.

Each operation is a method of `table.maintenance`. "Command" is the option of the command, "`CALL`" is the argument of
the procedure in Spark; in parentheses stands the key in its argument `options`.
"""


def properties_page() -> str:
    """The page of table properties."""
    reserved = "\n".join(f"- `{name}`" for name in sorted(properties.RESERVED_PROPERTIES))
    return _PROPERTIES_HEAD.replace("{reserved}", reserved) + "".join(_groups())


def errors_page() -> str:
    """The page of errors, in the order in which they are declared."""
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, IcefieldError)]
    return _ERRORS_HEAD + "".join(_error_row(each) for each in found if each.__module__ == errors.__name__)


def commands_page() -> str:
    """The page of commands, in the order of the help, with every option."""
    shared = shared_options()
    return _COMMANDS_HEAD + _option_table(shared) + "".join(_commands({each.name for each in shared}))


def maintenance_page() -> str:
    """The page of the operations of maintenance, with every option."""
    return _MAINTENANCE_HEAD + "".join(_operation(name, record) for name, record in OPERATIONS.items())


def _operation(name: str, record: type) -> str:
    head = f"\n## `{name}`\n\n| keyword | default | command | `CALL` | meaning |\n|---|---|---|---|---|\n"
    return head + "".join(map(_operation_row, options_of(record)))


def _operation_row(option: OperationOption) -> str:
    about = option.description
    default = "required" if option.is_required else f"`{option.default!r}`"
    command = f"`{option.command}`" if option.command else "-"
    call = f"`{about.argument}`" if about.argument else f"(`{about.entry}`)" if about.entry else "-"
    return f"| `{option.name}` | {default} | {command} | {call} | {_cell(about.doc)} |\n"


def pages() -> dict[Path, str]:
    """Every generated page with its string."""
    return {
        REFERENCE / "properties.md": properties_page(),
        REFERENCE / "errors.md": errors_page(),
        REFERENCE / "commands.md": commands_page(),
        REFERENCE / "maintenance.md": maintenance_page(),
    }


def _commands(shared: set[str | None]) -> Iterator[str]:
    """A heading, what the command does, and a table of its own options, for each command."""
    context = click.Context(GROUP, info_name="icefield")
    for name in GROUP.list_commands(context):
        command = GROUP.get_command(context, name)
        assert command is not None
        arguments = "".join(
            f" {each.make_metavar(context)}" for each in command.params if isinstance(each, click.Argument)
        )
        yield f"\n## `icefield {name}{arguments}`\n\n{_prose(command.help or '')}"
        own = [each for each in command.params if isinstance(each, click.Option) and each.name not in shared]
        if own:
            yield "\n" + _option_table(own)


def _prose(text: str) -> str:
    return "".join(f"{line.strip()}\n" for line in text.strip().splitlines())


def _option_table(options: Sequence[click.Parameter]) -> str:
    rows = [option.get_help_record(click.Context(GROUP)) for option in options]
    head = "| option | meaning |\n|---|---|\n"
    return head + "".join(f"| `{row[0].replace('|', _BAR)}` | {_cell(row[1])} |\n" for row in rows if row is not None)


def _groups() -> Iterator[str]:
    """A heading and a table for each group of the kernel's module, in its order, then for each plugin."""
    constants = _constants(properties, TABLE_PROPERTIES.values())
    for line in Path(properties.__file__).read_text("utf-8").splitlines():
        group = _GROUP.fullmatch(line.strip())
        if group:
            title = group.group(1)
            yield _head(f"{title[0].upper()}{title[1:]}")
        constant = line.partition(" = ")[0]
        if constant in constants:
            yield _property_row(constant, constants[constant])
    for package in sorted(path.parent.name for path in ROOT.glob("plugins/*/src/*/hooks.py")):
        declared = Plugins([f"{package}.hooks"]).table_properties.of_plugins
        if declared:
            yield _head(package.replace("_", "-"))
            for constant, each in _constants(import_module(f"{package}.properties"), declared).items():
                yield _property_row(constant, each)


def _constants(module: ModuleType, declared: Iterable[Property]) -> dict[str, Property]:
    """Properties by the names of their constants in a module."""
    names = {id(value): name for name, value in vars(module).items() if isinstance(value, Property)}
    return {names[id(each)]: each for each in declared}


def _head(title: str) -> str:
    return f"\n## {title}\n\n| property | type | default | read by | meaning |\n|---|---|---|---|---|\n"


def _property_row(constant: str, declared: Property) -> str:
    meaning = declared.doc
    if declared.unread:
        meaning += " Has no effect here; kept for other engines."
    if declared.choices:
        meaning += f" One of {', '.join(declared.choices)}."
    readers = ", ".join(_readers(constant, declared.name)) or "-"
    kind = _TYPE_NAMES[declared.type]
    return f"| `{declared.name}` | {kind} | {_default(declared)} | {readers} | {_cell(meaning)} |\n"


def _default(declared: Property) -> str:
    value = declared.default
    if value is None or value == "":
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and value >= KIB and value % KIB == 0 and "byte" in declared.doc + declared.name:
        size = f"{value // MIB} MiB" if value % MIB == 0 else f"{value // KIB} KiB"
        return f"`{value}` ({size})"
    return f"`{value}`"


def _readers(constant: str, name: str) -> list[str]:
    """The distributions whose code uses the property, by its constant or by its name."""
    return [distribution for distribution, words in _used_words().items() if constant in words or name in words]


@cache
def _used_words() -> dict[str, frozenset[str]]:
    """By distribution, the names and the strings in its code, documentation left out."""
    # The kit sets properties of the tables that it tests, and reads none.
    plugins = {path.name: path / "src" for path in ROOT.glob("plugins/*") if path.name != "icefield-testing"}
    places = {"icefield": ROOT / "framework/src", **plugins}
    found = {}
    for distribution, place in sorted(places.items()):
        modules = (path for path in place.rglob("*.py") if path.name not in _NO_READERS)
        found[distribution] = frozenset(word for path in modules for word in _words(path))
    return found


def _words(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _error_row(error: type[IcefieldError]) -> str:
    own = [base.__name__ for base in error.__bases__ if issubclass(base, IcefieldError)]
    others = [f"`{base.__name__}`" for base in error.__mro__[1:] if not issubclass(base, IcefieldError)]
    nearest = others[0] if others else ""
    retry = "when its `retryable` says so" if error is errors.StorageError else "yes" if error.retryable else "no"
    doc = " ".join((error.__doc__ or "").split())
    below = f"`{own[0]}`" if own else "-"
    return f"| `{error.__name__}` | {nearest} | {below} | {retry} | {_cell(doc.replace('``', '`'))} |\n"


def _cell(string: str) -> str:
    # 'bucket[16](id)' would be a link.
    return re.sub(r"'([^']*\]\([^']*)'", r"`\1`", string).replace("|", "\\|")


if __name__ == "__main__":
    for path, string in pages().items():
        path.write_text(string, "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
