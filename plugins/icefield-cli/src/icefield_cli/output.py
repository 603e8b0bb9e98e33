"""Print text and JSON. No control character in a table's strings or names reaches the terminal."""

from __future__ import annotations

import json as json_library
import math
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from icefield.toolkit import without_userinfo

_EXACT = 2**53 - 1
"""The largest whole number that JavaScript, jq 1.6 and other readers of JSON hold exactly: RFC 7493, 2.2."""

_SNAPSHOT_ID = re.compile(r"snapshot[ _-]ids?$|^current snapshot$|^parent_id$")
_SNAPSHOT_ID_OF_ROW = re.compile(r"^_\w*snapshot_id$")

_ROWS_MEASURED = 1_000
"""The number of rows that decide the widths of the columns; later rows are printed as they come."""


def print_rows(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    json: bool,
    terminal: bool | None = None,
    data: bool = False,
    pager: bool = False,
) -> None:
    """Print rows as they come: one JSON object a line, or aligned columns.

    On a terminal, columns are cut to fit its width; elsewhere nothing is cut. ``terminal`` states whether the output is
    a terminal; None detects it. ``data``: the rows are rows of a table, and their numbers stay numbers.
    ``pager``: whether rows that do not fit the height of a terminal go through the user's pager.
    """
    if json:
        for row in rows:
            print(_json(with_ids_of_row(row) if data else with_ids(row)))
        return
    heading = [_text(column) for column in columns]
    cells = ([_text(row.get(column)) for column in columns] for row in rows)
    if sys.stdout.isatty() if terminal is None else terminal:
        # rich is imported where it shows something: it takes a tenth of a second.
        cut_last = [_is_whole(name) for name in columns]
        import_module("icefield_cli.terminal").print_table(heading, cells, cut_last, pager=pager)
        return
    for line in _aligned(heading, cells):
        print(line)


def _is_whole(column: str) -> bool:
    """Whether a column is useless when it is cut: ids and names, which people copy."""
    return column in ("id", "name") or column.endswith("_id")


def _aligned(heading: list[str], cells: Iterator[list[str]]) -> Iterator[str]:
    measured = [heading, *islice(cells, _ROWS_MEASURED)]
    widths = [max(_width(line[i]) for line in measured) for i in range(len(heading))]
    for lines in (measured, cells):
        for line in lines:
            padded = (text + " " * (width - _width(text)) for text, width in zip(line, widths, strict=True))
            yield "  ".join(padded).rstrip()


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def print_line(text: str, hanging: int = 0, *, terminal: bool | None = None) -> None:
    """Print a line of text, broken between words if a terminal is too narrow.

    ``hanging``: how far the lines after the first are indented. A word that is wider, such as a location, stays whole.
    """
    text = clean(text)
    if sys.stdout.isatty() if terminal is None else terminal:
        width = shutil.get_terminal_size().columns
        if _width(text) > width:
            indent = " " * (len(text) - len(text.lstrip()))
            text = textwrap.fill(
                text.strip(),
                width,
                initial_indent=indent,
                subsequent_indent=" " * max(hanging, len(indent)),
                break_long_words=False,
                break_on_hyphens=False,
                replace_whitespace=False,
            )
    print(text)


def print_record(record: Mapping[str, Any], *, json: bool, ids: bool = True, indent: int | None = 2) -> None:
    """Print one record: a JSON object, or one line per key. ``ids``: snapshot ids are strings in JSON."""
    record = {key: _shown(value) for key, value in record.items()}
    if json:
        print(_json(with_ids(record) if ids else record, indent))
        return
    width = max((len(clean(key)) for key in record), default=0)
    for key, value in record.items():
        if isinstance(value, Mapping):
            print(f"{clean(key)}:")
            for inner, text in value.items():
                print_line(f"  {clean(str(inner))}: {_text(text)}", 4)
        elif isinstance(value, list):
            print(f"{clean(key)}:")
            for item in value:
                print_line(f"  {_text(item)}", 4)
        else:
            print_line(f"{clean(key).ljust(width)}  {_text(value)}", width + 2)


def _shown(value: Any) -> Any:
    """Return a value of a table's metadata without the passwords in its locations, which other engines may write."""
    if isinstance(value, str):
        return without_userinfo(value)
    if isinstance(value, Mapping):
        return {key: _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def clean(text: str) -> str:
    """Return the text with escapes for characters that do not print: controls, directions and surrogates."""
    return text if text.isprintable() else "".join(each if each.isprintable() else _escape(each) for each in text)


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: exact integers, bytes in hexadecimal, NaN and infinities by their names."""
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


def with_ids(value: Any, is_id: bool = False) -> Any:
    """Return a value with strings for snapshot ids, and for other integers that many readers of JSON would round.

    An id of any size is a string, so that a program may compare it with another.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return str(value) if is_id or abs(value) > _EXACT else value
    if isinstance(value, Mapping):
        return {key: with_ids(item, _SNAPSHOT_ID.search(str(key)) is not None) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [with_ids(item, is_id) for item in value]
    return value


def with_ids_of_row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of a table with strings for the snapshot ids in its metadata columns."""
    return {key: with_ids(value, True) if _SNAPSHOT_ID_OF_ROW.match(key) else value for key, value in row.items()}


def _json(value: Any, indent: int | None = None) -> str:
    """JSON with only printable characters: JSON's own escapes replace all others."""
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json_library.dumps(plain(value), ensure_ascii=not utf8, indent=indent)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else json_library.dumps(each)[1:-1] for each in text)


def _text(value: Any) -> str:
    made = plain(value)
    if made is None:
        return "-"
    return clean(made if isinstance(made, str) else json_library.dumps(made, ensure_ascii=False))


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
