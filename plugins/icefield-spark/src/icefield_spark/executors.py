"""The part of a catalog that executors get: access to files, without properties of its metastore or lock."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from io import BytesIO
from typing import Any, Final, TypeVar

from icefield import FileIO
from pyspark.cloudpickle import CloudPickler
from pyspark.sql import SparkSession

C = TypeVar("C", bound=Any)
_BROADCAST_FROM_BYTES: Final = 1 << 20

PLANNING: Final = re.compile(
    r"(uri|token|credential|oauth2-server-uri)$|urn:ietf:params:oauth:token-type:"
    r"|(lock|dynamodb|hive|iceberg\.hive|rest|header|ssl|gcp\.auth|encryption)\."
)
"""The properties that only the driver needs: it alone asks a metastore, a lock or a REST service."""


def for_executors(context: C) -> C:
    """A scan's or a write's context without the properties that only the driver needs, their credentials among them."""
    made: C = replace(context, io=context.io.for_workers(PLANNING))
    return made


def dumps(value: Any) -> bytes:
    """Pickle a value for executors. Each ``FileIO`` in it loses the properties that only the driver needs."""
    sink = BytesIO()
    _Pickler(sink, pickle.HIGHEST_PROTOCOL).dump(value)  # type: ignore[no-untyped-call]
    return sink.getvalue()


class _Pickler(CloudPickler):
    """Pickles values as Spark pickles functions."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FileIO):
            return obj.for_workers(PLANNING).__reduce__()
        return super().reducer_override(obj)  # type: ignore[no-untyped-call]


def shared(spark: SparkSession, chunks: list[bytes]) -> Any:
    """Chunks in the form for executors: broadcast if they are large and there is a Spark context."""
    context = getattr(spark, "_sc", None)  # not there with Spark Connect
    if context is None or sum(map(len, chunks)) < _BROADCAST_FROM_BYTES:
        return chunks
    return context.broadcast(chunks)
