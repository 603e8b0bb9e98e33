"""Services that plugins add to tables, transactions and scans, as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar


class Extensible:
    """An object with services as further public attributes: the plugins of its ``io`` make them for the object.

    A subclass names the kind of its services. Type checkers see the services that a subclass declares, and no others.
    """

    services: ClassVar[str]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            make = None if name.startswith("_") else self.io.plugins.service(self.services, name)
            if make is None:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)
            return make(self)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *self.io.plugins.names(self.services)})
