"""Errors of Icefield that Spark brings back from an executor as a string, made errors again."""

from __future__ import annotations

import re

from icefield import errors
from icefield.errors import IcefieldError
from pyspark.errors import PySparkException

# The last line of a traceback. Errors of Icefield are one line.
_LAST_LINE = re.compile(r"^icefield\.errors\.(\w+): (.+)$", re.MULTILINE)


def original(failure: PySparkException) -> IcefieldError | None:
    """The error that a task raised, when it was one of Icefield's; its data did not travel, its message did."""
    found = _LAST_LINE.findall(str(failure))
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, IcefieldError) else None
