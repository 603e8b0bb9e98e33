"""Which properties hold credentials, and how a text is freed of them.

Errors and logs of Icefield's own never hold a credential. This is for the texts of others (an SDK's exception, a
driver's message) before they are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import unquote

HIDDEN: Final = "***"
_NAMES: Final = re.compile(
    r"secret|passw|passphrase|tokens?(?:$|[-_.])|credential|private[-_.]?key|account[-_.]?key|api[-_.]?key|"
    r"(?:^|[-_.])(?:sas|pwd)(?:$|[-_.])|connection[-_.]?string"
)
_NO_SECRETS: Final = re.compile(r"expires|[-_.](?:at|ms|seconds|count|type|provider|endpoint|uri|url|file|path)$")
_LEAST: Final = 5  # what is shorter would be found in ordinary words
_PASSWORD_IN_URI: Final = re.compile(r"^[\w+.-]+://[^/?#@:]*:([^/?#]*)@")
# The parts of connection strings, of shared access signatures and of keys in JSON that are secret by themselves.
_PARTS: Final = re.compile(
    r"(?:AccountKey|SharedAccessSignature)=([^;]+)|(?:^|[?&;])sig=([^&;]+)|"
    r"\"(?:private_key|private_key_id|refresh_token|client_secret|access_token)\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"|"
    r"[?&;](?:password|pwd|passwd)=([^&;]+)",
    re.IGNORECASE,
)


def holds_credential(name: str) -> bool:
    """Whether a property of that name holds a credential, as far as the name tells."""
    lower = name.lower()
    return _NAMES.search(lower) is not None and _NO_SECRETS.search(lower) is None


def credentials_in(properties: Mapping[str, str]) -> list[str]:
    """The credentials among properties, longest first: whole values, and the secret parts of URIs and the like."""
    found = {secret for name, value in properties.items() for secret in _secrets(name, value) if len(secret) >= _LEAST}
    return sorted(found, key=lambda secret: (-len(secret), secret))


def without_credentials(text: str, properties: Mapping[str, str]) -> str:
    """A text in which no credential of the properties is left to read."""
    for secret in credentials_in(properties):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(name: str, value: str) -> Iterator[str]:
    if holds_credential(name):
        yield from _spellings(value)
    password = _PASSWORD_IN_URI.search(value)
    parts: Iterable[str] = [part for groups in _PARTS.findall(value) for part in groups if part]
    for part in (*parts, *([password[1]] if password else ())):
        yield from _spellings(part)


def _spellings(secret: str) -> Iterator[str]:
    if secret.lower() not in ("true", "false"):
        yield secret
        yield unquote(secret)
        yield repr(secret)[1:-1]
