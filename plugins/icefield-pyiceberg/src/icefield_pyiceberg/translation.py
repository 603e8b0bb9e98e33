"""The properties of one of PyIceberg's catalogs as properties of Icefield."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icefield.errors import InvalidArgument, UnsupportedFeature

_REFUSED_TYPES: Final = {
    "dynamodb": "Icefield has no catalog in DynamoDB; its tables can be registered in another catalog",
    "bigquery": "use type='biglake', the REST catalog of the same service",
    "in-memory": "use type='sql' with uri='sqlite:///:memory:' and a warehouse",
    "noop": "it has no tables",
}
_HOST: Final = "use 'adls.account-host', or 'adls.connection-string' with endpoints"
_REFUSED: Final = {
    "auth.custom": "Icefield loads no class of PyIceberg; a plugin can provide an authenticator",
    "auth.impl": "Icefield loads no class of PyIceberg; a plugin can provide an authenticator",
    "auth.entra": "use 'rest.auth.entra.*'",
    "s3.signer": "requests are signed where 'header.X-Iceberg-Access-Delegation' is 'remote-signing'",
    "botocore_session": "it is an object of Python; use 'client.*'",
    "s3.retry-strategy-impl": "Icefield loads no class of PyIceberg; 's3.retry.total-timeout-ms' bounds retries",
    "adls.blob-storage-authority": _HOST,
    "adls.blob-storage-scheme": _HOST,
    "adls.dfs-storage-authority": _HOST,
    "adls.dfs-storage-scheme": _HOST,
    "rest.authorization-url": "use 'oauth2-server-uri'",
}
# Settings of all of PyIceberg that change the meaning of tables.
_REFUSED_SETTINGS: Final = ("downcast-ns-timestamp-to-us-on-write", "legacy-current-snapshot-id")
_FALSE: Final = ("n", "no", "f", "false", "off", "0", "")

_AUTH_TYPES: Final = {
    "noop": "none",
    "basic": "basic",
    "legacyoauth2": "oauth2",
    "oauth2": "oauth2",
    "google": "google",
    "entra": "entra",
}
_RENAMED: Final = {
    "auth.basic.username": "rest.auth.basic.username",
    "auth.basic.password": "rest.auth.basic.password",
    "auth.google.credentials_path": "gcp.auth.credentials-path",
    "auth.oauth2.token_url": "oauth2-server-uri",
    "auth.oauth2.scope": "scope",
    "auth.legacyoauth2.credential": "credential",
    "auth.legacyoauth2.scope": "scope",
    "auth.legacyoauth2.initial_token": "token",
    "auth.legacyoauth2.auth_url": "oauth2-server-uri",
}
_CLIENT: Final = ("auth.oauth2.client_id", "auth.oauth2.client_secret")


def translated(name: str, tree: Any, settings: Mapping[str, Any]) -> dict[str, str]:
    """The properties of a catalog. Raises ``UnsupportedFeature``, by name, for a setting that cannot be honoured."""
    if not isinstance(tree, dict):
        raise InvalidArgument(f"the catalog '{name}' of PyIceberg's configuration holds no properties by name")
    found = _flat("", tree)
    for key in _REFUSED_SETTINGS:
        if str(settings.get(key, "false")).lower() not in _FALSE:
            raise _refused(name, key, "Icefield writes and reads tables without it; turn it off")
    kind = found.get("type", "").lower()
    if kind in _REFUSED_TYPES:
        raise _refused(name, f"type: {kind}", _REFUSED_TYPES[kind])
    for key in found:
        reason = next((why for prefix, why in _REFUSED.items() if key == prefix or key.startswith(f"{prefix}.")), None)
        if reason is not None:
            raise _refused(name, key, reason)
    if found.get("gcs.version-aware", "false").lower() not in _FALSE:
        raise _refused(name, "gcs.version-aware", "files of a table have one version; turn it off")
    made = _with_authentication(name, found)
    if (workers := settings.get("max-workers")) and "io.threads" not in made:
        made["io.threads"] = str(workers)
    return made


def _with_authentication(name: str, found: Mapping[str, str]) -> dict[str, str]:
    made = {key: value for key, value in found.items() if not key.startswith("auth.")}
    given = {key: value for key, value in found.items() if key.startswith("auth.")}
    if not given:
        return made
    kind = given.pop("auth.type", "")
    if kind not in _AUTH_TYPES:
        raise _refused(name, f"auth.type: {kind}", f"known are {', '.join(_AUTH_TYPES)}")
    made["rest.auth.type"] = _AUTH_TYPES[kind]
    client, secret = (given.pop(key, None) for key in _CLIENT)
    if client is not None and secret is not None:
        made["credential"] = f"{client}:{secret}"
    for key, value in given.items():
        if key not in _RENAMED:
            raise _refused(name, key, "Icefield has no such setting")
        made[_RENAMED[key]] = value
    return made


def _flat(prefix: str, tree: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= _flat(f"{prefix}{key}.", value)
        elif isinstance(value, list):
            raise InvalidArgument(f"the property '{prefix}{key}' of PyIceberg's configuration is a list and no string")
        elif value is not None:
            found[f"{prefix}{key}"] = str(value)
    return found


def _refused(name: str, key: str, reason: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the catalog '{name}' of PyIceberg's configuration has '{key}', which cannot be honoured: {reason}",
        property=key,
    )
