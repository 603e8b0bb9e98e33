"""The keys of an issuer of tokens: fetched from a URL (JWKS), bounded in bytes and time, and kept."""

from __future__ import annotations

import http.client
import json
import math
import threading
import time
import urllib.request
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
from icefield.errors import InvalidArgument, StorageError

_KEPT, _USABLE = 300.0, 600.0
_AGAIN, _PAUSE = 10.0, 2.0
_TIMEOUT, _FIRST = 10.0, 20.0
_MAX_BYTES: Final = 1024 * 1024
_NO_KEYS: Final = "the issuer of tokens does not give its keys"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Follow no redirect: only the operator sets the address of the keys."""


class IssuerKeys:
    """The signing keys of an issuer by name. Look-ups of known keys never wait, even while the issuer is asked.

    The issuer is asked every five minutes, and for an unknown key at most once in ten seconds. One thread asks at a
    time. Where the issuer gives no answer, known keys serve for another five minutes.
    """

    def __init__(self, uri: str) -> None:
        if urlsplit(uri).scheme.lower() not in ("http", "https"):
            raise InvalidArgument(f"the keys of an issuer are at an address of http or https, not at {uri:.200}")
        self._uri = uri
        self._asking = threading.Lock()
        self._known: tuple[Mapping[str, jwt.PyJWK], float] = ({}, -math.inf)
        self._asked_again = -math.inf
        self._failed_until = -math.inf

    def key(self, name: str) -> jwt.PyJWK | None:
        """Return the key with a name; None if the issuer has none.

        Raises ``StorageError`` if no known key is usable and the issuer gives no answer, or another thread asks it.
        """
        known, now = self._known, time.monotonic()
        keys, since = known
        found, fresh = keys.get(name), now < since + _KEPT
        if fresh and (found is not None or now < self._asked_again + _AGAIN):
            return found
        usable = found if now < since + _USABLE else None
        if not self._asking.acquire(timeout=_FIRST if now >= since + _USABLE else 0):
            if usable is None:
                raise StorageError("the issuer of tokens is being asked for its keys", retryable=True)
            return usable
        try:
            if self._known is known:
                self._ask(again=fresh)
        except StorageError:
            if usable is None:
                raise
            return usable
        finally:
            self._asking.release()
        return self._known[0].get(name)

    def fetch_data(self) -> Any:
        """The document at the address. Raises ``OSError``, ``HTTPException``, ``ValueError``, ``RecursionError``."""
        opener = urllib.request.build_opener(_NoRedirects())
        end = time.monotonic() + _TIMEOUT
        data = b""
        with opener.open(self._uri, timeout=_TIMEOUT) as answer:
            while piece := answer.read1(64 * 1024):
                data += piece
                if len(data) > _MAX_BYTES:
                    raise ValueError("too many bytes")
                if time.monotonic() > end:
                    raise TimeoutError
        return json.loads(data)

    def _ask(self, *, again: bool) -> None:
        """Ask the issuer for its keys, and keep them."""
        if time.monotonic() < self._failed_until:
            raise StorageError(_NO_KEYS, retryable=True)
        try:
            document = self.fetch_data()
            found = jwt.PyJWKSet.from_dict(document).keys if isinstance(document, dict) else []
        except (OSError, http.client.HTTPException, ValueError, TypeError, AttributeError, RecursionError) as error:
            self._failed_until = time.monotonic() + _PAUSE
            raise StorageError(f"{_NO_KEYS}: {type(error).__name__}", retryable=True) from None
        except jwt.PyJWTError:
            found = []
        finally:
            if again:
                self._asked_again = time.monotonic()
        signing = {each.key_id: each for each in found if each.key_id and each.public_key_use in ("sig", None)}
        self._known = (signing, time.monotonic())
