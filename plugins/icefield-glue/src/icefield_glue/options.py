"""The properties of the catalog, under the names of Iceberg's Java library and of PyIceberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.toolkit import is_true, whole_number

_REFUSED: Final = {
    "glue.lakeformation-enabled": "Lake Formation vends no credentials to icefield-glue; give the role access to the "
    "bucket, or use type='rest' with the Iceberg REST endpoint of Glue",
    "lock-impl": "writers under a lock manager do not check the version of a Glue table, and would overwrite the "
    "commits of writers that do: remove it here and from every other writer",
    "client.factory": "Icefield loads no class of Java; use 'glue.*' and 'client.*'",
    "client.credentials-provider": "Icefield loads no class of Java; use 'client.profile-name', 'client.role-arn' or "
    "keys",
}


@dataclass(frozen=True, slots=True, repr=False)
class GlueClientOptions:
    """How to reach Glue. The SDK's own chain supplies fields that are None. ``repr`` shows no credentials."""

    region: str | None
    endpoint: str | None
    profile: str | None
    access_key: str | None
    secret_key: str | None
    token: str | None
    role: str | None
    role_session: str | None
    external_id: str | None
    connect_seconds: int
    seconds: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> GlueClientOptions:
        """Read the properties ``glue.*``, else those for every AWS client, ``client.*``. Raises ``InvalidArgument``."""

        def first(*names: str) -> str | None:
            return next((properties[name] for name in names if properties.get(name)), None)

        return cls(
            first("glue.region", "client.region"),
            first("glue.endpoint"),
            first("glue.profile-name", "client.profile-name"),
            first("glue.access-key-id", "client.access-key-id"),
            first("glue.secret-access-key", "client.secret-access-key"),
            first("glue.session-token", "client.session-token"),
            first("glue.role-arn", "client.role-arn", "client.assume-role.arn"),
            first("glue.role-session-name", "client.role-session-name", "client.assume-role.session-name"),
            first("client.assume-role.external-id"),
            whole_number(properties, "glue.connect-timeout", 5, 1),
            whole_number(properties, "glue.request-timeout", 30, 1),
        )

    def __repr__(self) -> str:
        return f"GlueClientOptions(region={self.region!r}, profile={self.profile!r}, …)"


@dataclass(frozen=True, slots=True, repr=False)
class GlueOptions:
    """The settings of a catalog."""

    client: GlueClientOptions
    catalog_id: str | None
    """The AWS account of the Data Catalog; None for the account of the credentials."""
    skip_archive: bool
    """Whether Glue keeps no copy of the table's description before a commit."""
    any_name: bool
    """Whether names may have other characters than Athena and Hive read."""
    retries: int

    @classmethod
    def of(cls, catalog: str, properties: Mapping[str, str]) -> GlueOptions:
        """Read the properties. Raises ``InvalidArgument``, and ``UnsupportedFeature`` for what Java alone can do."""
        if "commit" in properties:
            raise InvalidArgument(f"catalog '{catalog}' of type 'glue' commits by itself: remove the property 'commit'")
        for name, reason in _REFUSED.items():
            if properties.get(name, "false").lower() != "false":
                raise UnsupportedFeature(f"catalog '{catalog}': '{name}' cannot be honoured: {reason}", property=name)
        return cls(
            GlueClientOptions.of(properties),
            properties.get("glue.id"),
            is_true(properties, "glue.skip-archive", True),
            is_true(properties, "glue.skip-name-validation"),
            whole_number(properties, "glue.max-retries", 5, 0),
        )
