"""Checks of a table property when it is set, before a write fails because of it or ignores it.

Any property may be set, as in other engines: an unknown name is kept. A value that no engine could use is refused. So
a file format must be provided by an installed plugin, or by one that can be installed. Only newly set properties are
checked: a table that has such a value already opens, reads and changes as any other.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from icefield.base.spelling import within
from icefield.errors import printable
from icefield.metadata.metrics.modes import parse_mode
from icefield.metadata.properties import (
    DELETE_FORMAT_DEFAULT,
    METRICS_COLUMN,
    METRICS_DEFAULT,
    NAME_MAPPING_DEFAULT,
    TABLE_PROPERTIES,
    WRITE_FORMAT_DEFAULT,
    Property,
    find_property,
)
from icefield.schema import parse_name_mapping

_CHECKED: Final = (
    replace(METRICS_DEFAULT, check=parse_mode),
    replace(METRICS_COLUMN, check=parse_mode),
    replace(NAME_MAPPING_DEFAULT, check=parse_name_mapping),
)
_EDITS: Final = 2
_SHORTEST: Final = 8
_LONGEST: Final = 200


class PropertyWarning(UserWarning):
    """An unknown table property was given, under a name that is close to the name of a known property."""


class KnownProperties:
    """The table properties of the kernel and of plugins, which check the properties that are set.

    ``formats`` are the names of file formats, ``of_plugins`` the properties that plugins declare. Where a plugin
    declares ``write.<format>.x``, ``write.delete.<format>.x`` is a property as well: the same for delete files.
    ``declared`` holds every property by its name; properties of a column by their prefix.
    """

    def __init__(self, formats: Collection[str] = (), of_plugins: Iterable[Property] = ()) -> None:
        self.of_plugins: Final = tuple(of_plugins)
        named = tuple(sorted(formats))
        self.declared: Final = dict(TABLE_PROPERTIES)
        for each in (
            *_CHECKED,
            *(replace(declared, choices=named) for declared in (WRITE_FORMAT_DEFAULT, DELETE_FORMAT_DEFAULT)),
            # The first declaration of a name counts.
            *(other for declared in reversed(self.of_plugins) for other in _in_delete_files(declared, formats)),
            *reversed(self.of_plugins),
        ):
            self.declared[each.name] = each

    @property
    def column_prefixes(self) -> tuple[str, ...]:
        """The beginnings of the names of properties that hold for one column."""
        return tuple(each.name for each in self.declared.values() if each.per_column)

    def check(self, properties: Mapping[str, str]) -> None:
        """Refuse unusable values.

        Raises ``InvalidArgument`` that names the property, the value and the reason, such as the allowed values.
        """
        for name, value in properties.items():
            declared = find_property(name, self.declared)
            if declared is not None:
                declared.parse(value, name[len(declared.name) :])

    def warn_of_names(self, names: Iterable[str]) -> None:
        """Warn once of each unknown name that is close to the name of a known property."""
        for name in names:
            likely = self.likely_name(name)
            if likely is not None:
                warn_at_caller(
                    f"the table property '{name}' is not known and is kept without effect; was '{likely}' meant?"
                )

    def likely_name(self, name: str) -> str | None:
        """The known property within two edits of an unknown name; None for every other name."""
        if find_property(name, self.declared) is not None or not _SHORTEST <= len(name) <= _LONGEST:
            return None
        folded = name.lower()
        for edits in range(_EDITS + 1):
            for declared in self.declared.values():
                found = _spelt(folded, name, declared, edits)
                if found is not None:
                    return found
        return None


def _in_delete_files(declared: Property, formats: Collection[str]) -> Iterable[Property]:
    """The property for delete files that follows from a format's property; empty for other properties."""
    prefix, _, rest = declared.name.partition(".")
    if prefix == "write" and rest.partition(".")[0] in formats:
        yield replace(declared, name=f"write.delete.{rest}", default=None)


def warn_at_caller(message: str) -> None:
    """Issue a ``PropertyWarning`` that points to the first code outside the kernel."""
    warnings.warn(printable(message), PropertyWarning, stacklevel=callers_level())


def _spelt(folded: str, name: str, declared: Property, edits: int) -> str | None:
    """The name in the property's own spelling, if it is within ``edits`` edits; else None."""
    if not declared.per_column:
        return declared.name if len(declared.name) >= _SHORTEST and within(folded, declared.name, edits) else None
    for length in range(len(declared.name) - edits, len(declared.name) + edits + 1):
        if length < len(name) and name[length - 1] == "." and within(folded[:length], declared.name, edits):
            return declared.name + name[length:]
    return None


def callers_level() -> int:
    """The stack level, seen from the function that warns, of the first code that is not Icefield's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(str(frame.f_globals.get("__name__"))):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "icefield" or module.startswith("icefield_")
