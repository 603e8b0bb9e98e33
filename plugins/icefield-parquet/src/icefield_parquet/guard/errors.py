"""Conversion of pyarrow's exceptions to Icefield's errors, which name the file.

For damage, pyarrow raises ``OSError`` without a number, ``ArrowException`` and built-in errors alike. Only the types of
exceptions are checked, never their messages. An encrypted column under a plain footer has no exception type of its own:
the footer shows it (``is_encrypted``). That part may go when pyarrow has an exception for a missing key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from icefield.errors import DecryptionFailed, IcefieldError, InvalidFile, StorageError, UnsupportedFeature

from icefield_parquet.guard.expansion import TooMany
from icefield_parquet.thrift import read_struct

_ENCRYPTION_ALGORITHM: Final = 8
"""The field of a footer that says how columns are encrypted."""

_LONGEST_REASON = 300


@contextmanager
def reading(
    location: str, what: str, encrypted: Callable[[], bool] | None = None, *, keyed: bool = False
) -> Iterator[None]:
    """Turn pyarrow's exceptions on a damaged file into ``InvalidFile``.

    An error of the storage keeps its kind. A feature that Arrow lacks raises ``UnsupportedFeature``, like each failure
    in an ``encrypted`` file; ``encrypted`` is called only after a failure. Damage of a file that is read with its key
    (``keyed``) raises ``DecryptionFailed``.
    """
    try:
        yield
    except IcefieldError:
        raise
    except TooMany as error:
        raise UnsupportedFeature(f"{location}: {what}: {_reason(error)}", location=location) from error
    except NotImplementedError as error:
        raise UnsupportedFeature(f"{location}: {what}: {_reason(error)}", location=location) from error
    except OSError as error:
        if error.errno is not None:
            raise StorageError(f"{location}: {what}: {_reason(error)}", location=location) from error
        raise _refused(error, location, what, encrypted, keyed) from error
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
        raise _refused(error, location, what, encrypted, keyed) from error


def _refused(
    error: BaseException, location: str, what: str, encrypted: Callable[[], bool] | None, keyed: bool
) -> IcefieldError:
    reason = _reason(error)
    if keyed:
        return DecryptionFailed(
            f"{location} cannot be decrypted: {what}: {reason}; it is damaged, cut, or another file", location=location
        )
    if encrypted is not None and encrypted():
        return UnsupportedFeature(f"{location} is encrypted: {what}: {reason}", location=location)
    return InvalidFile(f"{location} is damaged: {what}: {reason}", location=location)


def is_encrypted(footer: bytes) -> bool:
    """Whether a plain footer says that columns of the file are encrypted."""
    try:
        return _ENCRYPTION_ALGORITHM in read_struct(footer, 0)[0]
    except (IndexError, ValueError):
        return False


def _reason(error: BaseException) -> str:
    lines = str(error).splitlines()
    string = lines[0] if lines else ""
    return (string or type(error).__name__)[:_LONGEST_REASON]
