"""Where a service leads the requests for files, and that the user's own secrets do not follow it everywhere."""

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

# The stores' own hosts, which are nobody's who has an account there.
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
    """A kind of object store: its schemes, what names a host in its properties, and what of these holds secrets."""

    name: str
    schemes: tuple[str, ...]
    places: tuple[str, ...]
    secrets: tuple[str, ...]
    """The beginnings of names of secrets, and of what picks one that is on this machine."""


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
    """Opens nothing: the service leads to a place that the user's secrets are not for, and gives none."""

    prefix: str
    said: str

    @property
    def due(self) -> bool:
        return False

    def properties(self) -> Mapping[str, str]:
        raise AccessDenied(self.said)


@dataclass(frozen=True, slots=True)
class Guarded:
    """What opens files at the places of a service, and no secret of the user's that is not for them."""

    places: Mapping[str, str]
    """Those that are gone to."""
    withheld: Mapping[str, str]
    """What takes the place of the user's secrets, and of places that are not gone to."""
    refused: Mapping[str, str]
    """Why nothing is opened, by scheme."""

    def over(self, given: Mapping[str, str]) -> dict[str, str]:
        """Properties of the service's, as they are used."""
        return {**self.places, **given, **self.withheld}

    def refuses(self, location: str) -> str | None:
        """Why what is below a location is not opened; None where it is."""
        return next((said for scheme, said in self.refused.items() if location.startswith(scheme)), None)


def guarded(catalog: str, user: Mapping[str, str], served: Mapping[str, str], trusts: Callable[[str], bool]) -> Guarded:
    """What becomes of the user's secrets where a service says where files are asked for.

    A store at a host that the user's properties name, by the same property or by ``rest.trusted-hosts``, has them. At
    any other it has those that the service gives along; where it gives none, nothing is asked.
    """
    places: dict[str, str] = {}
    withheld: dict[str, str] = {}
    refused: dict[str, str] = {}
    for store in _STORES:
        stated = {key: served[key] for key in store.places if served.get(key)}
        moved = [key for key in stated if _is_moved(key, user, served, trusts)]
        along = _given_along(store, served)
        if moved and along is None:
            # Whoever spells a scheme otherwise finds no refusal by its prefix, and no other place either.
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
    """Properties that were renewed: for the places of before, and with what was withheld."""
    kept = {key: value for key, value in before.items() if key in _PLACES or not value or key == "adls.anon"}
    return {**kept, **{key: value for key, value in renewed.items() if key not in _PLACES and key != "adls.anon"}}


def _is_moved(key: str, user: Mapping[str, str], served: Mapping[str, str], trusts: Callable[[str], bool]) -> bool:
    """Whether a property leads to where the user does not."""
    address, own = _address(key, served), _address(key, user)
    if served[key] in (user.get(key), _DEFAULTS.get(key)):
        return False
    try:
        if own is not None and address is not None and _place(own) == _place(address):
            return False
        return address is None or not (_OF_THE_STORES.fullmatch(address) or trusts(address))
    except ValueError:  # no address: what opens the store says so
        return True


def _address(key: str, properties: Mapping[str, str]) -> str | None:
    """The address that a property leads to; None where it is no whole one."""
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
    """Which credentials a service gives along: for the store, or for a host of it alone; None where it gives none."""
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
