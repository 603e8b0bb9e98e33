"""Errors of a damaged file as one typed error that names the file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from icefield.errors import IcefieldError, InvalidFile, StorageError, UnsupportedFeature

_LONGEST_REASON: Final = 300
_DAMAGE: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zlib.error,
)


@contextmanager
def reporting_damage(location: str, what: str = "the file", *others: type[Exception]) -> Iterator[None]:
    """Turn errors of decoding a file into ``InvalidFile`` with its location.

    Errors of Arrow, ``struct``, ``zlib`` and Python's own conversions count as damage, and so do the classes in
    ``others``, which belong to the format's library. An error of Icefield keeps its class and gets the location if it
    has none. A library's error for a missing feature becomes ``UnsupportedFeature``, and an ``OSError`` of the system
    ``StorageError``.
    ``what`` names the decoded part of the file in messages.
    """
    try:
        yield
    except IcefieldError as error:
        if "location" in error.data:
            raise
        raise type(error)(f"{location}: {error.message}", **error.data, location=location) from error
    except NotImplementedError as error:
        raise UnsupportedFeature(f"{location}: {what}: {_reason(error)}", location=location) from error
    except OSError as error:
        if error.errno is not None:
            raise StorageError(f"{location}: {what}: {_reason(error)}", location=location) from error
        raise _damaged(location, what, error) from error
    except (*_DAMAGE, *others) as error:
        raise _damaged(location, what, error) from error


def _damaged(location: str, what: str, error: Exception) -> InvalidFile:
    return InvalidFile(f"{location} is damaged: {what}: {_reason(error)}", location=location)


def _reason(error: Exception) -> str:
    """The first line of a library's message; the rest may contain the bytes themselves."""
    lines = str(error).splitlines()
    return ((lines[0] if lines else "") or type(error).__name__)[:_LONGEST_REASON]
