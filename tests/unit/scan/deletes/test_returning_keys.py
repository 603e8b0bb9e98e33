"""Keys that are deleted, inserted again and deleted again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, equality_deletes
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import new_table

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])


def one_row(id_: int | None, kind: str | None) -> pa.Table:
    return pa.Table.from_pylist([{"id": id_, "kind": kind}], SCHEMA)


@pytest.mark.spec("DEL-20", "SCAN-43")
@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_a_key_that_is_inserted_again_lives_until_it_is_deleted_again(rounds: int) -> None:
    table = new_table(schema=SCHEMA)
    for _ in range(rounds):
        table.append(one_row(1, "a"))
        assert table.scan().count() == 1
        commit(table, equality_deletes(table, ["id"], [{"id": 1}]))
        assert table.scan().to_arrow().num_rows == table.scan().count() == 0
    table.append(one_row(1, "b"))
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "kind": "b"}]


KEYS = st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, "a"]))
STEPS = st.lists(st.tuples(st.sampled_from(["insert", "delete id", "delete both"]), KEYS), min_size=2, max_size=12)


@pytest.mark.slow
@pytest.mark.spec("SCAN-43")
@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_few_keys_that_come_and_go_many_times_are_as_a_list_of_rows_has_them(steps: list[Any]) -> None:
    table, model = new_table(schema=SCHEMA), Counter[Any]()
    for kind, key in steps:
        if kind == "insert":
            table.append(one_row(*key))
            model[key] += 1
            continue
        names = ["id"] if kind == "delete id" else ["id", "kind"]
        row = dict(zip(("id", "kind"), key, strict=True))
        commit(table, equality_deletes(table, names, [{name: row[name] for name in names}]))
        model = Counter({each: n for each, n in model.items() if each[: len(names)] != key[: len(names)]})
    found = table.scan().to_arrow().to_pylist()
    assert Counter((row["id"], row["kind"]) for row in found) == model
