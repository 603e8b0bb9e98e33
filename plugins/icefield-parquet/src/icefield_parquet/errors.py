"""How failures of pyarrow become Icefield's errors, which name the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from icefield.errors import IcefieldError, InvalidFile, StorageError, UnsupportedFeature

_LONGEST_REASON = 300


@contextmanager
def reading(location: str, what: str) -> Iterator[None]:
    """Turn what pyarrow raises on a damaged file into ``InvalidFile``.

    An error of the storage below keeps its kind, and what Arrow has not built is ``UnsupportedFeature``.
    """
    try:
        yield
    except IcefieldError:
        raise
    except NotImplementedError as error:
        raise UnsupportedFeature(f"{location}: {what}: {_reason(error)}", location=location) from error
    except OSError as error:
        if error.errno is not None:
            raise StorageError(f"{location}: {what}: {_reason(error)}", location=location) from error
        raise InvalidFile(f"{location} is damaged: {what}: {_reason(error)}", location=location) from error
    except (
        pa.ArrowException,
        MemoryError,
        RecursionError,
        OverflowError,
        UnicodeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise InvalidFile(f"{location} is damaged: {what}: {_reason(error)}", location=location) from error


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    text = lines[0] if lines else ""
    return (text or type(error).__name__)[:_LONGEST_REASON]
