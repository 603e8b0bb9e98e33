"""The catalog types that are named after services: ``rest`` with the properties that a service's documentation states.

A property of the user goes before the one of a preset. A property without a default is asked for by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from icefield.errors import InvalidArgument

TYPE: Final = "type"
_REGION: Final = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_ARN: Final = re.compile(r"arn:aws[a-z-]*:s3tables:([a-z0-9-]+):\d+:bucket/.+")
_FIELD: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Preset:
    """The facts about a service; ``{region}`` and ``{origin}`` (of the ``uri``) stand for parts of the user's."""

    source: str
    """The page that states them."""
    uri: str
    """The address, or a path that is added to a ``uri`` without one."""
    warehouse: str | None = None
    """The form of ``warehouse``; None if the service has a default."""
    gives: Mapping[str, str] = field(default_factory=dict)
    """Properties that the user may leave out."""
    needs: tuple[tuple[str, ...], ...] = ()
    """Further properties that the user gives: one of each group."""
    with_credential: Mapping[str, str] = field(default_factory=dict)
    """Properties that go with ``credential``; an empty value is asked for."""


_AWS: Final = {
    "rest.auth.type": "sigv4",
    "rest.sigv4-enabled": "true",
    "rest.signing-region": "{region}",
    "client.region": "{region}",
}
_OAUTH: Final = (("credential", "token"),)

PRESETS: Final[Mapping[str, Preset]] = {
    "glue-rest": Preset(
        "https://docs.aws.amazon.com/glue/latest/dg/connect-glu-iceberg-rest.html",
        "https://glue.{region}.amazonaws.com/iceberg",
        "the number of the AWS account, such as 123456789012",
        {**_AWS, "rest.signing-name": "glue"},
    ),
    "s3tables": Preset(
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-integrating-open-source.html",
        "https://s3tables.{region}.amazonaws.com/iceberg",
        "the bucket, such as arn:aws:s3tables:eu-central-1:123456789012:bucket/sales",
        {**_AWS, "rest.signing-name": "s3tables"},
    ),
    "polaris": Preset(
        "https://polaris.apache.org/releases/1.0.0/getting-started/using-polaris/",
        "/api/catalog",
        "the name of the catalog in Polaris",
        needs=_OAUTH,
        with_credential={"scope": "PRINCIPAL_ROLE:ALL"},
    ),
    "snowflake": Preset(
        "https://docs.snowflake.com/en/user-guide/tables-iceberg-query-using-external-query-engine-snowflake-horizon",
        "/polaris/api/catalog",
        "the name of the database",
        needs=_OAUTH,
        with_credential={"scope": ""},  # session:role:<role>
    ),
    "unity": Preset(
        "https://docs.databricks.com/aws/en/external-access/iceberg",
        "/api/2.1/unity-catalog/iceberg-rest",
        "the name of the catalog in Unity Catalog",
        needs=_OAUTH,
        with_credential={"oauth2-server-uri": "{origin}/oidc/v1/token", "scope": "all-apis"},
    ),
    "nessie": Preset("https://projectnessie.org/guides/iceberg-rest/", "/iceberg"),
    "lakekeeper": Preset(
        "https://docs.lakekeeper.io/docs/latest/engines/",
        "/catalog",
        "the name of the warehouse in Lakekeeper",
        with_credential={"oauth2-server-uri": ""},
    ),
    "biglake": Preset(
        "https://docs.cloud.google.com/bigquery/docs/blms-rest-catalog",
        "https://biglake.googleapis.com/iceberg/v1/restcatalog",
        "the bucket, such as gs://sales",
        {"rest.auth.type": "google"},
        (("header.x-goog-user-project", "gcp.auth.quota-project"),),
    ),
    "onelake": Preset(
        "https://learn.microsoft.com/fabric/onelake/table-apis/iceberg-table-apis-get-started",
        "https://onelake.table.fabric.microsoft.com/iceberg",
        "<workspace id>/<item id>",
        {"rest.auth.type": "entra"},
    ),
}


def with_preset(name: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    """The properties of a catalog with those of its service. Raises ``InvalidArgument`` for a missing property."""
    kind = properties.get(TYPE, "")
    preset = PRESETS.get(kind)
    if preset is None:
        return properties
    given = {key: value for key, value in properties.items() if value}

    def ask(wanted: str, told: str) -> InvalidArgument:
        return InvalidArgument(
            f"catalog '{name}' of type '{kind}' needs the property {wanted}: {told}; see {preset.source}"
        )

    uri = _uri(preset, given)
    if uri is None:
        raise ask("'uri'", "the address of the service, such as https://host")
    found = {"uri": uri, **preset.gives, **({} if "credential" not in given else preset.with_credential)}
    if preset.warehouse is not None and "warehouse" not in given:
        raise ask("'warehouse'", preset.warehouse)
    for group in preset.needs:
        if not any(each in given for each in group):
            raise ask(" or ".join(f"'{each}'" for each in group), "the service requires it")
    found = {**found, **given, "uri": uri}
    fields = {"region": _region(kind, given), "origin": _origin(uri)}
    for key, value in found.items():
        for part in _FIELD.findall(value) if key not in given or key == "uri" else ():
            if fields[part] is None:
                raise ask("'client.region'", "the region, such as eu-central-1")
        if not value:
            raise ask(f"'{key}'", "it goes with 'credential'")
    return {
        key: value if key in given and key != "uri" else _FIELD.sub(lambda match: fields[match[1]] or "", value)
        for key, value in found.items()
    }


def _uri(preset: Preset, given: Mapping[str, str]) -> str | None:
    uri = given.get("uri")
    if not preset.uri.startswith("/"):
        return uri or preset.uri
    if uri is None or "://" not in uri:
        return uri
    return uri if urlsplit(uri).path.strip("/") else f"{uri.rstrip('/')}{preset.uri}"


def _region(kind: str, given: Mapping[str, str]) -> str | None:
    named = given.get("rest.signing-region") or given.get("client.region")
    if named is None and kind == "s3tables" and (found := _ARN.fullmatch(given.get("warehouse", ""))):
        named = found[1]
    if named is not None and not _REGION.fullmatch(named):
        raise InvalidArgument(f"{named!r} is no region of AWS, such as eu-central-1")
    return named


def _origin(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"
