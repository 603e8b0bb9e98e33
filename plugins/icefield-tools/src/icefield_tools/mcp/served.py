"""The catalogs that a server opens, and answers without their credentials."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import Any

import icefield
from icefield import Catalog, Table
from icefield.errors import InvalidArgument
from icefield.toolkit import without_credentials, without_userinfo


class ServedCatalogs:
    """The configured catalogs by name, or the one that a command names. Each is opened when it is first needed."""

    def __init__(self, name: str | None, properties: Mapping[str, Any]) -> None:
        self._is_one, self._given = name is not None, dict(properties)
        self.default = name or icefield.default_catalog_name()
        configured = icefield.configured_catalogs()
        if name is None and not properties and configured and self.default not in configured:
            self.default = next(iter(configured))
        self._open: dict[str, Catalog] = {}
        self._lock = RLock()

    def names(self) -> list[str]:
        """The names of all catalogs, the default one first."""
        others = [] if self._is_one else [each for each in icefield.configured_catalogs() if each != self.default]
        return [self.default, *others]

    def given(self, name: str) -> dict[str, Any]:
        """The properties of a catalog besides its configuration: those of the command, for the default one."""
        return self._given if name == self.default else {}

    def catalog(self, name: str = "") -> Catalog:
        """A catalog by its name; the default one for an empty name. Raises ``InvalidArgument`` for any other name."""
        name = name or self.default
        with self._lock:
            if name not in self._open:
                if name not in self.names():
                    raise InvalidArgument(f"there is no catalog '{name}'; there are: {', '.join(self.names())}")
                self._open[name] = icefield.load_catalog(name, **self.given(name))
            return self._open[name]

    def table(self, identifier: str, catalog: str = "") -> Table:
        """A table of a catalog, as it is now."""
        return self.catalog(catalog).load_table(identifier)

    def redacted(self, value: Any) -> Any:
        """A value of JSON without credentials of any open catalog, and without passwords of URIs."""
        with self._lock:
            known = [*(each.properties for each in self._open.values()), {k: str(v) for k, v in self._given.items()}]

        def clean(part: Any) -> Any:
            if isinstance(part, str):
                for properties in known:
                    part = without_credentials(part, properties)
                return without_userinfo(part)
            if isinstance(part, dict):
                return {clean(key): clean(each) for key, each in part.items()}
            return [clean(each) for each in part] if isinstance(part, list) else part

        return clean(value)
