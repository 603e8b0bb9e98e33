"""Names and values that a careless plugin changes, confuses or loses: one set for all contracts.

A plugin keeps each of them to the letter, or refuses it. Two spellings of one group never stand for one thing, unless
the plugin says so (``CaseInsensitiveCatalog``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMPOSED: Final = "caf\u00e9"
"""The last letter is one code point, as in the Unicode form NFC."""
DECOMPOSED: Final = "cafe\u0301"
"""The last letter is a letter and an accent, as in NFD; it looks the same."""

SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "Unicode form": (COMPOSED, DECOMPOSED),
    "case": ("case", "Case"),
    "blanks": ("blank", " blank", "blank "),
    "dots": ("dot", ".dot", "dot.", "d.ot"),
    "escapes": ("es cape", "es%20cape", "es+cape"),
}
"""By kind, names of one level that differ in it alone. Each is printable and has no slash."""

PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "slashes": ("slash/es", "slash//es"),
    "dot files": ("folder/file", "folder/.file", ".folder/file"),
    "marks of a URL": ("mark", "mark?query", "mark#part", "mark%", "mark%3Fquery"),
}
"""By kind, names of files that differ in it alone; some have several levels."""

VALUES: Final[Mapping[str, str]] = {
    "empty": "",
    "blank": " ",
    "blanks at both ends": " value ",
    "case": "VaLuE",
    "composed": COMPOSED,
    "decomposed": DECOMPOSED,
    "escape": "a%20b+c",
    "equals": "a=b;c=d",
    "quotes": 'it\'s a "value"',
    "number": "007",
    "word": "null",
}
"""Values of a property, each kept to the letter."""


def spelled(text: str) -> str:
    """A text in ASCII, so that two texts that look the same differ."""
    return ascii(text)
