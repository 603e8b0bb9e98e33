"""Creations of tables with an outcome that is unknown at first."""

from __future__ import annotations

from typing import Any

import pytest
from tables import Around, ids, memory_catalog, orphans, rows


@pytest.mark.spec("FS-13")
def test_a_strategy_that_fails_after_it_created_the_table_costs_no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(attempt: int, outcome: Any) -> Any:
        raise RuntimeError("a bug")

    catalog = memory_catalog()
    backend = catalog._backend
    make = backend.strategy
    monkeypatch.setattr(backend, "strategy", lambda *given: Around(make(*given), after=crash))
    creation = catalog.create_table_transaction("db.t", rows([]).schema)
    creation.append(rows([1]))
    table = creation.commit_transaction()
    monkeypatch.undo()
    assert ids(table) == ids(catalog.load_table("db.t")) == [1]
    assert orphans(table) == set()
