"""A stream warns of snapshots that are never expired."""

from __future__ import annotations

import warnings

import pytest
from icefield_spark.streaming import epochs
from icefield_spark.streaming.epochs import Epoch
from tables import new_table, rows


def test_an_epoch_warns_of_many_snapshots_and_names_the_command_and_the_property(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(epochs, "MANY_SNAPSHOTS", 3)
    table = new_table()
    said: list[list[str]] = []
    for number in range(5):
        with warnings.catch_warnings(record=True) as caught, table.transaction() as transaction:
            warnings.simplefilter("always")
            transaction.append(rows([number]), Epoch("query", number).claim(transaction, "main", None))
            transaction.commit_transaction()
        said.append([str(one.message) for one in caught])
    assert [len(each) for each in said] == [0, 0, 0, 1, 0]
    assert "icefield expire-snapshots db.t" in said[3][0]
    assert "history.expire.max-snapshot-age-ms" in said[3][0]
