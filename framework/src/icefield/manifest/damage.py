"""One typed error, with the location, for whatever a damaged manifest sets off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from icefield.errors import IcefieldError, InvalidFile, InvalidMetadata


@contextmanager
def damaged_file(what: str, location: str) -> Iterator[None]:
    """Turn what decoding raises for a damaged file into ``InvalidMetadata`` that names it."""
    try:
        yield
    except InvalidFile as error:
        raise InvalidMetadata(f"{what} {location} is damaged: {error}", location=location) from error
    except IcefieldError:
        raise
    except (pa.ArrowException, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise InvalidMetadata(f"{what} {location} is damaged: {error}", location=location) from error
