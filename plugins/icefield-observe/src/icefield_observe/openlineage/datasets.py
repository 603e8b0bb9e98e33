"""Tables as datasets of OpenLineage: their names, schemas and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from icefield.abc import CommitMade, ScanPlanned
from icefield.types import IcebergType, ListType, MapType, NestedField, StructType
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet
from openlineage.client.generated.input_statistics_input_dataset import InputStatisticsInputDatasetFacet
from openlineage.client.generated.lifecycle_state_change_dataset import (
    LifecycleStateChange,
    LifecycleStateChangeDatasetFacet,
)
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
from openlineage.client.generated.storage_dataset import StorageDatasetFacet
from openlineage.client.generated.symlinks_dataset import Identifier, SymlinksDatasetFacet

_WITH_SLASH = ("file", "hdfs", "viewfs")
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}


def input_of(event: ScanPlanned, catalog_namespace: str | None, producer: str) -> InputDataset:
    """The table of a scan. Its schema has the columns that are read; the filter is left out."""
    namespace, name = name_of(event.location, event.catalog, event.table)
    statistics = InputStatisticsInputDatasetFacet(fileCount=event.files_planned, producer=producer)
    names = {name for _, name in event.projected}
    fields = [] if event.schema is None else [one for one in event.schema.fields if not names or one.name in names]
    return InputDataset(
        namespace,
        name,
        {"inputStatistics": statistics},
        facets=_facets(event, catalog_namespace, fields, event.snapshot_id, producer),
    )


def output_of(event: CommitMade, catalog_namespace: str | None, is_new: bool, producer: str) -> OutputDataset:
    """The table of a commit, with its whole schema, and the rows, bytes and files that the commit adds."""
    namespace, name = name_of(event.location, event.catalog, event.table)
    fields: Iterable[NestedField] = () if event.schema is None else event.schema.fields
    facets = _facets(event, catalog_namespace, list(fields), event.snapshot_id, producer)
    if is_new or event.snapshot_id is None:
        change = LifecycleStateChange.CREATE if is_new else LifecycleStateChange.ALTER
        facets["lifecycleStateChange"] = LifecycleStateChangeDatasetFacet(change, producer=producer)
    statistics = OutputStatisticsOutputDatasetFacet(
        _number(event.summary, "added-records"),
        _number(event.summary, "added-files-size"),
        _number(event.summary, "added-data-files"),
        producer=producer,
    )
    return OutputDataset(
        namespace, name, {} if event.snapshot_id is None else {"outputStatistics": statistics}, facets=facets
    )


def name_of(location: str | None, catalog: str | None, table: tuple[str, ...]) -> tuple[str, str]:
    """The namespace and the name of a dataset by OpenLineage's rules for storage: the store, and the path in it.

    A table without a known location has the name of its catalog, and its own name.
    """
    if location is None:
        return catalog or "icefield", ".".join(table)
    parts = urlsplit(location)
    scheme = _SCHEMES.get(parts.scheme, parts.scheme or "file")
    path = parts.path.rstrip("/") or "/"
    if scheme == "file":
        return "file", unquote(path)
    return f"{scheme}://{parts.netloc.rpartition('@')[2] if scheme == 's3' else parts.netloc}", (
        path if scheme in _WITH_SLASH else path.lstrip("/") or "/"
    )


def schema_fields(fields: Iterable[NestedField]) -> list[SchemaDatasetFacetFields]:
    """The fields of a schema, with those below structs, lists and maps."""
    return [
        SchemaDatasetFacetFields(one.name, _type_name(one.field_type), one.doc, fields=_below(one.field_type))
        for one in fields
    ]


def _below(of: IcebergType) -> list[SchemaDatasetFacetFields]:
    if isinstance(of, StructType):
        return schema_fields(of.fields)
    if isinstance(of, ListType):
        return [_named("_element", of.element)]
    return [_named("key", of.key), _named("value", of.value)] if isinstance(of, MapType) else []


def _named(name: str, field: NestedField) -> SchemaDatasetFacetFields:
    return SchemaDatasetFacetFields(name, _type_name(field.field_type), fields=_below(field.field_type))


def _type_name(of: IcebergType) -> str:
    """The name of a type; nested ones have those of OpenLineage, and their fields apart."""
    if isinstance(of, StructType):
        return "struct"
    if isinstance(of, ListType):
        return "array"
    return "map" if isinstance(of, MapType) else str(of)


def _facets(
    event: ScanPlanned | CommitMade,
    catalog_namespace: str | None,
    fields: list[NestedField],
    snapshot_id: int | None,
    producer: str,
) -> dict[str, Any]:
    identifier = Identifier(catalog_namespace or event.catalog or "icefield", ".".join(event.table), "TABLE")
    facets: dict[str, Any] = {
        "storage": StorageDatasetFacet("iceberg", producer=producer),
        "symlinks": SymlinksDatasetFacet([identifier], producer=producer),
    }
    if fields:
        facets["schema"] = SchemaDatasetFacet(schema_fields(fields), producer=producer)
    if snapshot_id is not None and snapshot_id >= 0:
        facets["version"] = DatasetVersionDatasetFacet(str(snapshot_id), producer=producer)
    return facets


def _number(summary: Mapping[str, str], key: str) -> int | None:
    value = summary.get(key, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else None
