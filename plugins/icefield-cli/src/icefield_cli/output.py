"""Text and JSON. A value of a table is printed so that no control character of it reaches the terminal."""

from __future__ import annotations

import datetime
import decimal
import json as json_library
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_MAX_CELL = 80


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, json: bool) -> None:
    """Print rows as they come in JSON (one object a line), or aligned in text."""
    if json:
        for row in rows:
            print(json_library.dumps(plain(row), ensure_ascii=False))
        return
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in [list(columns), *cells]) for i in range(len(columns))]
    for line in [list(columns), *cells]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


def print_record(record: Mapping[str, Any], *, json: bool) -> None:
    """Print one record: a JSON object, or a line a key."""
    if json:
        print(json_library.dumps(plain(record), ensure_ascii=False, indent=2))
        return
    width = max((len(key) for key in record), default=0)
    for key, value in record.items():
        if isinstance(value, Mapping):
            print(f"{key}:")
            for inner, text in value.items():
                print(f"  {inner}: {_text(text)}")
        elif isinstance(value, list):
            print(f"{key}:")
            for item in value:
                print(f"  {_text(item)}")
        else:
            print(f"{key.ljust(width)}  {_text(value)}")


def plain(value: Any) -> Any:
    """A value as JSON can hold it: numbers exact, times in ISO form, bytes in hexadecimal."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.date | datetime.time | datetime.datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, decimal.Decimal | uuid.UUID | datetime.timedelta):
        return str(value)
    return str(value)


def _cell(value: Any) -> str:
    text = _text(value)
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"


def _text(value: Any) -> str:
    made = plain(value)
    if made is None:
        return "-"
    text = made if isinstance(made, str) else json_library.dumps(made, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
