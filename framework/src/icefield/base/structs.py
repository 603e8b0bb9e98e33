"""A decorator of msgspec structs that threads decode."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind", bound=type)


def decodable(kind: Kind) -> Kind:
    """A struct that threads may decode: a decorator of its class.

    msgspec finds out what it must know of a struct when one is decoded for the first time. Another thread that decodes
    one meanwhile reads what is half made, which ends the process. So it is done while the module is imported.
    """
    msgspec.json.Decoder(kind)
    return kind
