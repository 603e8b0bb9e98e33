"""The object store hosts that a service states, and the protection of the user's secrets from untrusted ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from icefield.abc import FileAccess
from icefield.errors import AccessDenied
from icefield.toolkit import is_true, without_userinfo

from icefield_rest.settings import TRUSTED_HOSTS, host_of

# The stores' own hosts, which no customer of a store controls.
_OF_THE_STORES: Final = re.compile(
    r"https://(?:s3(?:-fips)?(?:\.dualstack)?(?:\.[a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?|storage\.googleapis\.com)(?::443)?/?",
    re.IGNORECASE,
)
_AUTHORITY: Final = "adls.blob-storage-authority"
_SCHEME: Final = "adls.blob-storage-scheme"
_DEFAULTS: Final = {_AUTHORITY: ".blob.core.windows.net", _SCHEME: "https"}
_WHOLE: Final = "for the store"
_OF_A_HOST: Final = "for a host"
_METHODS_OF_GOOGLE: Final = ("anon", "google_default", "cache", "cloud")


@dataclass(frozen=True, slots=True)
class _Store:
    """A kind of object store: its schemes, and its properties for hosts (``places``) and for secrets."""

    name: str
    schemes: tuple[str, ...]
    places: tuple[str, ...]
    secrets: tuple[str, ...]
    """Prefixes of properties with secrets, and of properties that select a secret on this machine."""


_S3: Final = _Store(
    "S3",
    ("s3",),
    ("s3.endpoint",),
    tuple(
        f"{kind}.{name}"
        for kind in ("s3", "client")
        for name in ("access-key-id", "secret-access-key", "session-token", "profile-name", "role-", "assume-role.")
    ),
)
_GCS: Final = _Store("Google Cloud Storage", ("gs", "gcs"), ("gcs.service.host",), ("gcs.oauth2.token",))
_ADLS: Final = _Store(
    "Azure",
    ("abfs", "wasb", "az"),
    (
        "adls.account-host",
        "adls.account-name",
        "adls.auth.shared-key.account.name",
        _SCHEME,
        _AUTHORITY,
        "adls.connection-string",
    ),
    (
        "adls.account-key",
        "adls.account-name",
        "adls.auth.shared-key.",
        "adls.client-",
        "adls.connection-string",
        "adls.credential",
        "adls.sas-token",
        "adls.tenant-id",
        "adls.token",
    ),
)
_STORES: Final = (_S3, _GCS, _ADLS)
_PLACES: Final = frozenset(key for store in _STORES for key in store.places)


@dataclass(frozen=True)
class RefusedAccess(FileAccess):
    """Refuses to open files: the service states an untrusted host, and gives no credentials for it."""

    prefix: str
    said: str

    @property
    def due(self) -> bool:
        return False

    def properties(self) -> Mapping[str, str]:
        raise AccessDenied(self.said)


@dataclass(frozen=True, slots=True)
class Guarded:
    """Properties for files at the service's hosts, without user secrets that belong to other hosts."""

    places: Mapping[str, str]
    """Properties of hosts that may be used."""
    withheld: Mapping[str, str]
    """Replacements for the user's secrets, and for hosts that may not be used."""
    refused: Mapping[str, str]
    """The reason why no files are opened, by scheme."""

    def over(self, given: Mapping[str, str]) -> dict[str, str]:
        """Merge the service's properties with these."""
        return {**self.places, **given, **self.withheld}

    def refuses(self, location: str) -> str | None:
        """Return the reason why files below a location are not opened; None where they are."""
        return next((said for scheme, said in self.refused.items() if location.startswith(scheme)), None)


def guarded(catalog: str, user: Mapping[str, str], served: Mapping[str, str], trusts: Callable[[str], bool]) -> Guarded:
    """Decide on the user's secrets for the object store hosts that a service states.

    Hosts that the user's properties name, by the same property or by ``rest.trusted-hosts``, get the secrets. Any other
    host gets only credentials from the service; without such credentials, no files are opened.
    """
    places: dict[str, str] = {}
    withheld: dict[str, str] = {}
    refused: dict[str, str] = {}
    for store in _STORES:
        stated = {key: served[key] for key in store.places if served.get(key)}
        moved = [key for key in stated if _is_moved(key, user, served, trusts)]
        along = _given_along(store, served)
        if moved and along is None:
            # A location with another spelling of the scheme escapes the refusal, but then it only reaches the user's
            # own host.
            withheld |= {key: user.get(key, "") for key in stated}
            refused |= dict.fromkeys(store.schemes, _refusal(catalog, store, moved, served))
            continue
        places |= stated
        if moved:
            withheld |= {key: "" for key in user if key.startswith(store.secrets) and not served.get(key)}
        if moved and along is _OF_A_HOST:
            withheld["adls.anon"] = "true"  # a host without a signature of its own is shown nothing
    return Guarded(places, withheld, refused)


def _refusal(catalog: str, store: _Store, moved: list[str], served: Mapping[str, str]) -> str:
    shown = ", ".join(key if "string" in key else f"{key}={without_userinfo(served[key])[:200]}" for key in moved)
    return (
        f"the service of catalog '{catalog}' leads to a place on {store.name} that the properties of the catalog do "
        f"not name ({shown}), and gives no credentials for it, so that yours are not sent there; where that is right, "
        f"state the same in your properties, or list the host in {TRUSTED_HOSTS}"
    )


def without_other_places(before: Mapping[str, str], renewed: Mapping[str, str]) -> dict[str, str]:
    """Merge renewed properties: hosts and withheld properties stay as before."""
    kept = {key: value for key, value in before.items() if key in _PLACES or not value or key == "adls.anon"}
    return {**kept, **{key: value for key, value in renewed.items() if key not in _PLACES and key != "adls.anon"}}


def _is_moved(key: str, user: Mapping[str, str], served: Mapping[str, str], trusts: Callable[[str], bool]) -> bool:
    """Whether a property leads to a host that is neither the user's, nor trusted, nor the store's default."""
    address, own = _address(key, served), _address(key, user)
    if served[key] in (user.get(key), _DEFAULTS.get(key)):
        return False
    try:
        if own is not None and address is not None and _place(own) == _place(address):
            return False
        return address is None or not (_OF_THE_STORES.fullmatch(address) or trusts(address))
    except ValueError:  # no valid address: opening the store raises the error
        return True


def _address(key: str, properties: Mapping[str, str]) -> str | None:
    """Return the address that a property leads to; None if it is incomplete."""
    value = properties.get(key)
    if not value or key not in ("s3.endpoint", "gcs.service.host", "adls.account-host", "adls.account-name"):
        return None
    if "://" in value:
        return value
    if key == "adls.account-name":
        value += properties.get(_AUTHORITY) or _DEFAULTS[_AUTHORITY]
    scheme = properties.get(_SCHEME) or "https" if key.startswith("adls.") else "https"
    return f"{scheme}://{value}"


def _place(address: str) -> tuple[str, str]:
    return address.partition("://")[0].lower(), host_of(address)


def _given_along(store: _Store, served: Mapping[str, str]) -> str | None:
    """Return the scope of the service's credentials: the whole store, or a host of it; None without credentials."""
    given = {key for key, value in served.items() if value}
    if store is _S3:
        pairs = ({f"{kind}.access-key-id", f"{kind}.secret-access-key"} for kind in ("s3", "client"))
        free = is_true(served, "s3.anonymous") or is_true(served, "s3.remote-signing-enabled")
        return _WHOLE if free or any(pair <= given for pair in pairs) else None
    if store is _GCS:
        token = served.get("gcs.oauth2.token", "")
        own = token and token not in _METHODS_OF_GOOGLE and not os.path.isfile(token)
        return _WHOLE if own or is_true(served, "gcs.no-auth") else None
    keys = {"adls.account-key", "adls.auth.shared-key.account.key", "adls.credential", "adls.sas-token"}
    whole = keys | {"adls.connection-string", "adls.token"}
    if whole & given or {"adls.client-id", "adls.client-secret", "adls.tenant-id"} <= given:
        return _WHOLE
    of_a_host = any(key.startswith(("adls.sas-token.", "adls.connection-string.")) for key in given)
    if of_a_host or is_true(served, "adls.anon"):
        return _OF_A_HOST
    return None
