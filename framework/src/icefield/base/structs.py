"""A decorator of msgspec structs that threads decode."""

from __future__ import annotations

from typing import TypeVar

import msgspec

Kind = TypeVar("Kind", bound=type)


def decodable(kind: Kind) -> Kind:
    """A struct that threads may decode: a decorator of its class.

    msgspec builds the type information of a struct when it first decodes one. A second thread that decodes one at that
    time reads incomplete information and crashes the process. The decorator therefore builds it at import.
    """
    msgspec.json.Decoder(kind)
    return kind
