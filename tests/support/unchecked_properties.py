"""Properties that a table has from another engine, which checks none of them."""

from __future__ import annotations

import pytest
from icefield import Table


def stated(table: Table, **properties: str) -> None:
    """Set properties as another engine does: without a check. In names, two underscores stand for a dash."""
    given = {name.replace("__", "-").replace("_", "."): value for name, value in properties.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icefield.metadata.updates.table.check_properties", dict)
        patch.setattr("icefield.metadata.property_checks.KnownProperties.check", lambda *_: None)
        table.set_properties(given)
