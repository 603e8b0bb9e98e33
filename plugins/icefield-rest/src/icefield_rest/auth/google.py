"""Google's credentials, from the machine or from a file."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

import google.auth
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import Request
from icefield.errors import AccessDenied
from icefield.toolkit import reset_after_fork

from icefield_rest.auth.authenticator import Authenticator, Post, Unsigned

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


class Google(Authenticator):
    """A bearer token of Google, renewed before it expires.

    ``gcp.auth.credentials-path`` names a file; without it the default credentials are found. ``gcp.auth.scopes``.
    """

    def __init__(self, name: str, properties: Mapping[str, str], post: Post) -> None:
        self._path = properties.get("gcp.auth.credentials-path")
        given = (scope.strip() for scope in properties.get("gcp.auth.scopes", _SCOPE).split(","))
        self._scopes = [scope for scope in given if scope]
        self._project = properties.get("gcp.auth.quota-project")
        self._found: Any = None
        self._unlock()
        reset_after_fork(self._unlock)

    def _unlock(self) -> None:
        self._lock = threading.Lock()

    def headers(self, request: Unsigned) -> Mapping[str, str]:
        made: dict[str, str] = {}
        with self._lock:
            try:
                if self._found is None:
                    self._found = self._credentials()
                self._found.before_request(Request(), request.method, request.url, made)
            except (GoogleAuthError, OSError) as error:
                raise AccessDenied(f"Google's credentials cannot be had: {type(error).__name__}") from error
        return made

    def renew(self, refused: Mapping[str, str]) -> bool:
        with self._lock:
            self._found = None
        return True

    def says(self) -> str | None:
        return f"Google's, of {self._path}" if self._path else "Google's default credentials"

    def _credentials(self) -> Any:
        library: Any = google.auth  # part of it has no types
        if self._path:
            found, _ = library.load_credentials_from_file(self._path, self._scopes, quota_project_id=self._project)
        else:
            found, _ = library.default(self._scopes, quota_project_id=self._project)
        return found
