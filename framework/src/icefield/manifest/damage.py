"""One typed error, with the location, for all faults of a damaged manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from icefield.base.limits import FREE_DECODING, MAX_DECODED_MANIFEST_BYTES, MAX_INFLATION
from icefield.errors import IcefieldError, InvalidFile, InvalidMetadata, UnsupportedFeature

_ENCRYPTED = b"AGS1"


@contextmanager
def damaged_file(what: str, location: str) -> Iterator[None]:
    """Turn the errors of decoding a damaged file into ``InvalidMetadata`` that names the file."""
    try:
        yield
    except InvalidFile as error:
        raise InvalidMetadata(f"{what} {location} is damaged: {error}", location=location) from error
    except IcefieldError:
        raise
    except (pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise InvalidMetadata(f"{what} {location} is damaged: {error}", location=location) from error


def refuse_encrypted(what: str, location: str, data: bytes) -> None:
    """Raise ``UnsupportedFeature`` for a file that begins as the format's encrypted streams do."""
    if data.startswith(_ENCRYPTED):
        raise UnsupportedFeature(f"{what} {location} is encrypted", location=location)


def gathered(batches: Iterable[pa.RecordBatch], size: int) -> list[pa.RecordBatch]:
    """The batches of a file of ``size`` bytes.

    Raises ``InvalidFile`` once the batches hold more bytes than any real file of that size. Each block has a limit of
    its own, but a file may have any number of blocks.
    """
    most = min(MAX_DECODED_MANIFEST_BYTES, max(FREE_DECODING, MAX_INFLATION * size))
    found, held = [], 0
    for batch in batches:
        held += batch.nbytes
        if held > most:
            raise InvalidFile(f"{size:,} bytes hold more than {most:,}, which is refused")
        found.append(batch)
    return found
