"""The configuration of the destination: a catalog, and the properties of new tables."""

import dataclasses
from typing import Any, Final

from dlt.common.configuration import configspec
from dlt.common.destination.client import DestinationClientDwhConfiguration
from icefield import Catalog

from icefield_tools.catalogs import catalog_of


@configspec
class IcefieldClientConfiguration(DestinationClientDwhConfiguration):
    """The catalog that holds the datasets, and the properties of new tables."""

    destination_type: Final[str] = dataclasses.field(default="icefield", init=False, repr=False, compare=False)
    catalog: Any = None
    """The name of a configured catalog, or a ``Catalog``; the default catalog if it is None."""
    properties: dict[str, Any] | None = None
    """Properties of the catalog besides those of its configuration."""
    table_properties: dict[str, Any] | None = None
    """Properties of new tables."""

    def load_catalog(self) -> Catalog:
        """The catalog; all jobs of a process share one."""
        if isinstance(self.catalog, Catalog):
            return self.catalog
        return catalog_of(self.catalog, self.properties)

    def data_location(self) -> str:
        """The name of the catalog, which tells two destinations apart."""
        catalog = self.load_catalog()
        return f"{catalog.name}|{catalog.properties.get('uri', '')}|{catalog.properties.get('warehouse', '')}"

    def fingerprint(self) -> str:
        """Nothing: the telemetry of dlt learns no names."""
        return ""

    def __str__(self) -> str:
        return self.catalog.name if isinstance(self.catalog, Catalog) else self.catalog or "the default catalog"
