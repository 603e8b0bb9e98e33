"""Text and JSON. Whatever a table holds is printed so that no control character of it reaches the terminal."""

from __future__ import annotations

import json as json_library
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from icefield.toolkit import without_userinfo

_MAX_CELL = 80
_ROWS_MEASURED = 1_000
"""Rows whose widths make the columns' widths; those after them are printed as they come."""


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, json: bool) -> None:
    """Print rows as they come: one JSON object a line, or aligned text."""
    if json:
        for row in rows:
            print(_json(row))
        return
    cells = ([_cell(row.get(column)) for column in columns] for row in rows)
    for line in _aligned([_cell(column) for column in columns], cells):
        print(line)


def _aligned(heading: list[str], cells: Iterator[list[str]]) -> Iterator[str]:
    measured = [heading, *islice(cells, _ROWS_MEASURED)]
    widths = [max(len(line[i]) for line in measured) for i in range(len(heading))]
    for lines in (measured, cells):
        for line in lines:
            yield "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def print_record(record: Mapping[str, Any], *, json: bool) -> None:
    """Print one record: a JSON object, or a line a key."""
    record = {key: _shown(value) for key, value in record.items()}
    if json:
        print(_json(record, indent=2))
        return
    width = max((len(clean(key)) for key in record), default=0)
    for key, value in record.items():
        if isinstance(value, Mapping):
            print(f"{clean(key)}:")
            for inner, text in value.items():
                print(f"  {clean(str(inner))}: {_text(text)}")
        elif isinstance(value, list):
            print(f"{clean(key)}:")
            for item in value:
                print(f"  {_text(item)}")
        else:
            print(f"{clean(key).ljust(width)}  {_text(value)}")


def _shown(value: Any) -> Any:
    """What is said of a table, without the passwords of locations that other engines gave it."""
    if isinstance(value, str):
        return without_userinfo(value)
    if isinstance(value, Mapping):
        return {key: _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def clean(text: str) -> str:
    """A text in which what does not print (controls, directions, half characters) is spelt out."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escape(each) for each in text)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: whole numbers exact, bytes in hexadecimal, what is no number by its name."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def _json(value: Any, indent: int | None = None) -> str:
    """JSON without a character that does not print: JSON's own escapes say the same."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json_library.dumps(plain(value), ensure_ascii=not utf8, indent=indent)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else json_library.dumps(each)[1:-1] for each in text)


def _cell(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"


def _text(value: Any) -> str:
    made = plain(value)
    if made is None:
        return "-"
    return clean(made if isinstance(made, str) else json_library.dumps(made, ensure_ascii=False))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
