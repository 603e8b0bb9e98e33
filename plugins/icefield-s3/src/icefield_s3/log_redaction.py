"""Redact credentials from logs: the SDK's DEBUG messages about this plugin's own requests are dropped.

These messages hold headers and answers, and with them session tokens and the credentials of roles. The SDK's messages
about other requests in the same process stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LOGGERS: Final = (
    "aiobotocore.endpoint",
    "aiobotocore.parsers",
    "botocore.auth",
    "botocore.awsrequest",
    "botocore.credentials",
    "botocore.endpoint",
    "botocore.hooks",
    "botocore.httpsession",
    "botocore.parsers",
    "botocore.regions",
    "botocore.retryhandler",
    "botocore.utils",
)
_ours: ContextVar[bool] = ContextVar("icefield_s3_request", default=False)


class _Discretion(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG or not _ours.get()


@contextmanager
def discreet() -> Iterator[None]:
    """A context whose requests count as this plugin's own."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


def install() -> None:
    """Add the filter to the SDK's loggers, once for each logger."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, _Discretion) for known in logger.filters):
            logger.addFilter(_Discretion())
