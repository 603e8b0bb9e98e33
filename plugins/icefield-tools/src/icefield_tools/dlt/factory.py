"""The factory of the destination, which a pipeline of dlt is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlt.common.destination import Destination, DestinationCapabilitiesContext
from icefield import Catalog

from icefield_tools.dlt.client import IcefieldClient
from icefield_tools.dlt.configuration import IcefieldClientConfiguration


class icefield(Destination[IcefieldClientConfiguration, IcefieldClient]):  # noqa: N801  # as dlt names destinations
    """A catalog of Icefield as a destination of dlt: a dataset is a namespace, and each table is an Iceberg table.

    Args:
        catalog: The name of a configured catalog, or a ``Catalog``; by default the default catalog.
        table_properties: Properties of new tables, such as ``{"format-version": 3}``.
        destination_name: The name of the destination in the configuration of dlt.
        environment: The environment that the destination belongs to.
        properties: Properties of the catalog, besides those of its configuration.
        options: Other fields of the configuration, and capabilities of the destination.
    """

    spec = IcefieldClientConfiguration

    def __init__(
        self,
        catalog: str | Catalog | None = None,
        *,
        properties: Mapping[str, Any] | None = None,
        table_properties: Mapping[str, Any] | None = None,
        destination_name: str | None = None,
        environment: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            catalog=catalog,
            properties=None if properties is None else dict(properties),
            table_properties=None if table_properties is None else dict(table_properties),
            destination_name=destination_name,
            environment=environment,
            **options,
        )

    @property
    def client_class(self) -> type[IcefieldClient]:
        """The client that loads packages."""
        return IcefieldClient

    def _raw_capabilities(self) -> DestinationCapabilitiesContext:
        found = DestinationCapabilitiesContext.generic_capabilities(
            preferred_loader_file_format="parquet",
            supported_merge_strategies=["delete-insert", "upsert", "insert-only"],
        )
        found.supported_loader_file_formats = ["parquet", "reference"]
        # Each strategy is one overwrite: readers see the old rows or the new ones.
        found.supported_replace_strategies = ["insert-from-staging", "truncate-and-insert", "staging-optimized"]
        found.wei_precision = (38, 0)
        found.supports_nested_types = True
        found.supports_ddl_transactions = False
        found.supports_transactions = False
        found.enforces_nulls_on_alter = False
        found.sqlglot_dialect = "duckdb"
        return found


icefield.register()
