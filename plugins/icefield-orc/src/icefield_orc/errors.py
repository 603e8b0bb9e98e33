"""Conversion of the ORC libraries' exceptions to Icefield's errors, which name the file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from icefield.errors import IcefieldError, InvalidFile, StorageError, UnsupportedFeature

_LONGEST_REASON = 300
_DAMAGE = (
    pa.ArrowException,
    struct.error,
    ArithmeticError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


@contextmanager
def reading(
    location: str, what: str, storage_error: Callable[[], IcefieldError | None] = lambda: None
) -> Iterator[None]:
    """Turn exceptions from a damaged file into ``InvalidFile``.

    An error of the storage keeps its kind. Features that pyarrow lacks raise ``UnsupportedFeature``. pyarrow renames an
    error that the file raised: ``storage_error`` gives the original.
    """
    try:
        try:
            yield
        except (OSError, *_DAMAGE):
            if (original := storage_error()) is not None:
                raise original from None
            raise
    except IcefieldError as error:
        if "location" in error.data:
            raise
        raise type(error)(f"{location}: {error}", **error.data, location=location) from error
    except NotImplementedError as error:
        raise UnsupportedFeature(f"{location}: {what}: {_reason(error)}", location=location) from error
    except OSError as error:
        if error.errno is not None:
            raise StorageError(f"{location}: {what}: {_reason(error)}", location=location) from error
        raise damaged(location, f"{what}: {_reason(error)}") from error
    except _DAMAGE as error:
        raise damaged(location, f"{what}: {_reason(error)}") from error


def damaged(location: str, why: str) -> InvalidFile:
    """The error for a file that is not a whole ORC file."""
    return InvalidFile(f"{location} is damaged: {why}", location=location)


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    return ((lines[0] if lines else "") or type(error).__name__)[:_LONGEST_REASON]
