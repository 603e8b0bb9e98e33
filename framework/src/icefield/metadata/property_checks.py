"""Checks of a table property when it is set, before a write fails because of it or ignores it.

Any property may be set, as in other engines: an unknown name is kept. A value that no engine could use is refused. So
a file format must be one of Iceberg's, or of an installed plugin, but Iceberg's formats need no plugin here. Only newly
set properties are checked: a table that has such a value already opens, reads and changes as any other.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from icefield.errors import InvalidArgument, InvalidSchema, printable
from icefield.metadata.metrics.modes import parse_mode
from icefield.metadata.properties import (
    AVRO_COMPRESSION,
    DELETE_AVRO_COMPRESSION,
    DELETE_FORMAT_DEFAULT,
    DELETE_ORC_COMPRESSION,
    DELETE_PARQUET_COMPRESSION,
    METRICS_COLUMN,
    METRICS_DEFAULT,
    NAME_MAPPING_DEFAULT,
    ORC_BLOOM_FILTER_FPP,
    ORC_COMPRESSION,
    PARQUET_BLOOM_FILTER_FPP,
    PARQUET_COMPRESSION,
    TABLE_PROPERTIES,
    WRITE_FORMAT_DEFAULT,
    Property,
    find_property,
)
from icefield.metadata.spelling import within
from icefield.schema import parse_name_mapping

FORMATS: Final = ("avro", "orc", "parquet")
"""The file formats of the specification."""

# The codecs that any engine reads or writes under the property; the plugins of Icefield write fewer of them.
_PARQUET: Final = ("brotli", "gzip", "lz4", "lz4_raw", "lzo", "none", "snappy", "uncompressed", "zstd")
_AVRO: Final = (
    *("bzip2", "deflate", "gzip", "none", "null", "snappy"),
    *("uncompressed", "xz", "zstandard", "zstd"),
)
_ORC: Final = ("brotli", "lz4", "lzo", "none", "snappy", "uncompressed", "zlib", "zstd")
_CODECS: Final = {
    PARQUET_COMPRESSION.name: _PARQUET,
    DELETE_PARQUET_COMPRESSION.name: _PARQUET,
    AVRO_COMPRESSION.name: _AVRO,
    DELETE_AVRO_COMPRESSION.name: _AVRO,
    ORC_COMPRESSION.name: _ORC,
    DELETE_ORC_COMPRESSION.name: _ORC,
}
_FORMAT_NAMES: Final = frozenset({WRITE_FORMAT_DEFAULT.name, DELETE_FORMAT_DEFAULT.name})
_EDITS: Final = 2
_SHORTEST: Final = 8
_LONGEST: Final = 200


class PropertyWarning(UserWarning):
    """An unknown table property was given, under a name that is close to the name of a known property."""


def check_values(properties: Mapping[str, str], formats: Collection[str]) -> None:
    """Refuse unusable values; ``formats`` are the file formats of the installed plugins.

    Raises ``InvalidArgument`` that names the property, the value and the reason, such as the allowed values.
    """
    for name, value in properties.items():
        declared = find_property(name)
        if declared is None:
            continue
        if name in _FORMAT_NAMES:
            _check_choice(name, value, sorted({*FORMATS, *formats}))
        elif name in _CODECS:
            _check_choice(name, value, _CODECS[name])
        elif declared.name in _PARSED:
            _check_parsed(name, value, _PARSED[declared.name])


def warn_of_names(names: Iterable[str]) -> None:
    """Warn once of each unknown name that is close to the name of a known property."""
    for name in names:
        likely = likely_name(name)
        if likely is not None:
            warn_at_caller(
                f"the table property '{name}' is not known and is kept without effect; was '{likely}' meant?"
            )


def warn_at_caller(message: str) -> None:
    """Issue a ``PropertyWarning`` that points to the first code outside the kernel."""
    warnings.warn(printable(message), PropertyWarning, stacklevel=callers_level())


def likely_name(name: str) -> str | None:
    """The known property within two edits of an unknown name; None for every other name."""
    if find_property(name) is not None or not _SHORTEST <= len(name) <= _LONGEST:
        return None
    folded = name.lower()
    for edits in range(_EDITS + 1):
        for declared in TABLE_PROPERTIES.values():
            found = _spelt(folded, name, declared, edits)
            if found is not None:
                return found
    return None


def _spelt(folded: str, name: str, declared: Property, edits: int) -> str | None:
    """The name in the property's own spelling, if it is within ``edits`` edits; else None."""
    if not declared.per_column:
        return declared.name if len(declared.name) >= _SHORTEST and within(folded, declared.name, edits) else None
    for length in range(len(declared.name) - edits, len(declared.name) + edits + 1):
        if length < len(name) and name[length - 1] == "." and within(folded[:length], declared.name, edits):
            return declared.name + name[length:]
    return None


def _check_choice(name: str, value: str, allowed: Collection[str]) -> None:
    if value.strip().lower() not in allowed:
        raise _refused(name, value, f"is none of {', '.join(allowed)}")


def _check_parsed(name: str, value: str, parse: Callable[[str], object]) -> None:
    try:
        parse(value)
    except (InvalidArgument, InvalidSchema) as error:
        raise _refused(name, value, f"cannot be used: {error}") from error


def _refused(name: str, value: str, why: str) -> InvalidArgument:
    shown = value if len(value) <= 40 else value[:40] + "..."
    return InvalidArgument(f"table property '{name}': {shown!r} {why}", property=name)


def _probability(string: str) -> float:
    value = float(string)  # that it is a number has been seen before
    if not 0 < value < 1:
        raise InvalidArgument("a probability is between 0 and 1")
    return value


_PARSED: Final[dict[str, Callable[[str], object]]] = {
    METRICS_DEFAULT.name: parse_mode,
    METRICS_COLUMN.name: parse_mode,
    NAME_MAPPING_DEFAULT.name: parse_name_mapping,
    PARQUET_BLOOM_FILTER_FPP.name: _probability,
    ORC_BLOOM_FILTER_FPP.name: _probability,
}


def callers_level() -> int:
    """The stack level, seen from the function that warns, of the first code that is not Icefield's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _is_ours(str(frame.f_globals.get("__name__"))):
        frame, level = frame.f_back, level + 1
    return level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "icefield" or module.startswith("icefield_")
