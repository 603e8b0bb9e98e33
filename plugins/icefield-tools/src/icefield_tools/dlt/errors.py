"""Errors of Icefield as dlt tells them apart: to retry, or to give up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from dlt.common.destination.exceptions import (
    DestinationTerminalException,
    DestinationTransientException,
    DestinationUndefinedEntity,
)
from icefield.errors import IcefieldError, InvalidArgument, NoSuchNamespace, NoSuchTable, UnsupportedFeature


@contextmanager
def as_dlt_errors() -> Iterator[None]:
    """Raise an error of Icefield as the error of dlt that has the same remedy."""
    try:
        yield
    except (NoSuchTable, NoSuchNamespace) as error:
        raise DestinationUndefinedEntity(error) from error
    except (InvalidArgument, UnsupportedFeature, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DestinationTerminalException(error) from error
    except IcefieldError as error:
        raise DestinationTransientException(error) from error
