"""Properties that hold credentials, and the redaction of credentials in strings.

Errors and logs of Icefield's own never hold a credential. This module redacts strings of other libraries (an SDK's
exception, a driver's message) before they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import unquote

E = TypeVar("E", bound=BaseException)

HIDDEN: Final = "***"
"""The replacement of a redacted credential."""
_NAMES: Final = re.compile(
    r"secret|passw|passphrase|tokens?(?:$|[-_.])|credential|private[-_.]?key|account[-_.]?key|api[-_.]?key|"
    r"(?:^|[-_.])(?:sas|pwd)(?:$|[-_.])|connection[-_.]?string"
)
_NO_SECRETS: Final = re.compile(r"expires|[-_.](?:at|ms|seconds|count|type|provider|endpoint|uri|url|file|path)$")
_LEAST: Final = 5  # shorter credentials occur in ordinary words
# The first pattern ends at the last "@" of the authority. The second ends at the last "@" of the string, for passwords
# with unescaped special characters.
_PASSWORD_IN_URI: Final = (
    re.compile(r"[\w+.-]{1,64}://[^\s/?#@:]*:([^\s/?#]*)@"),
    re.compile(r"^[\w+.-]+://[^/?#@:]*:(?!\d*(?:[/?#]|$))(.*)@", re.DOTALL),
)
# A scheme of any length would be looked for from each letter of a long word.
_USERINFO: Final = re.compile(r"([A-Za-z][\w+.-]{0,63}://[^\s/?#@:]*:)[^\s/?#]*@")
# The secret parts of connection strings, shared access signatures and JSON keys.
_PARTS: Final = re.compile(
    r"(?:AccountKey|SharedAccessSignature)=([^;]+)|(?:^|[?&;])sig=([^&;]+)|"
    r"\"(?:private_key|private_key_id|refresh_token|client_secret|access_token)\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"|"
    r"[?&;](?:password|pwd|passwd)=([^&;]+)",
    re.IGNORECASE,
)


def holds_credential(name: str) -> bool:
    """Whether a property holds a credential, judging by its name."""
    lower = name.lower()
    return _NAMES.search(lower) is not None and _NO_SECRETS.search(lower) is None


def credentials_in(properties: Mapping[str, str]) -> list[str]:
    """The credentials in properties, longest first: whole values, and secret parts of URIs or connection strings."""
    found = {secret for name, value in properties.items() for secret in _secrets(name, value) if len(secret) >= _LEAST}
    return sorted(found, key=lambda secret: (-len(secret), secret))


def without_credentials(string: str, properties: Mapping[str, str]) -> str:
    """A string with all credentials of the properties redacted."""
    for secret in credentials_in(properties):
        string = string.replace(secret, HIDDEN)
    return string


def without_userinfo(string: str) -> str:
    """A string with the passwords of URIs redacted: ``scheme://user:***@host``.

    A user without a password stays, as in ``abfss://box@host``.
    """
    return _USERINFO.sub(rf"\1{HIDDEN}@", string) if "@" in string else string


def has_password(location: str) -> bool:
    """Whether a location or an endpoint has a password in its authority."""
    return "@" in location and _USERINFO.match(location) is not None


def scrub(error: E, properties: Mapping[str, str]) -> E:
    """Redact credentials in an error of another library and in its whole chain of causes.

    A traceback shows the whole chain, not only the last error.
    """
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        found = rest.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        rest += [found.__cause__, found.__context__]
        found.args = tuple(_scrubbed(part, properties) for part in found.args)
        if isinstance(found, OSError):  # its message shows these attributes, not its arguments
            found.strerror = _scrubbed(found.strerror, properties)
            found.filename, found.filename2 = (
                _scrubbed(name, properties) for name in (found.filename, found.filename2)
            )
    return error


def _scrubbed(part: Any, properties: Mapping[str, str]) -> Any:
    return without_userinfo(without_credentials(part, properties)) if isinstance(part, str) else part


def _secrets(name: str, value: str) -> Iterator[str]:
    if holds_credential(name):
        yield from _spellings(value)
    parts: list[str] = [part for groups in _PARTS.findall(value) for part in groups if part]
    for pattern in _PASSWORD_IN_URI:
        for password in pattern.findall(value):
            # A library may split at the first "@" of the password and show the rest of it.
            parts += [password, *password.split("@")]
    for part in parts:
        yield from _spellings(part)


def _spellings(secret: str) -> Iterator[str]:
    if secret.lower() not in ("true", "false"):
        yield secret
        yield unquote(secret)
        yield repr(secret)[1:-1]
