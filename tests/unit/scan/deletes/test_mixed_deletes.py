"""Any mix of delete files gives the rows that a list of rows gives."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes, write_file
from deleted_tables import FORMATS
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import new_table

KEYS = st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.one_of(st.none(), st.sampled_from("ab")))


@given(st.data())
@settings(max_examples=25, deadline=None)
@pytest.mark.slow
@pytest.mark.spec("SCAN-43", "DEL-20", "DEL-01")
def test_any_mix_of_deletes_gives_what_a_list_of_rows_gives(data: st.DataObject) -> None:
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("n", pa.int32())])
    version = data.draw(st.sampled_from([2, 3]))
    table = new_table(schema=schema, **{"format-version": str(version)})
    model: list[tuple[dict[str, Any], int, str, int]] = []
    vectors: dict[str, set[int]] = {}
    formats = st.sampled_from(FORMATS)
    for step in range(data.draw(st.integers(2, 6))):
        kind = data.draw(st.sampled_from(["data", "data", "position", "equality", "vector"]))
        files = data_files(table) if step else []
        if kind == "data" or not files:
            keys = data.draw(st.lists(KEYS, min_size=1, max_size=8))
            held = [{"id": id_, "kind": name, "n": step * 100 + at} for at, (id_, name) in enumerate(keys)]
            file = write_file(table, table.schema(), pa.Table.from_pylist(held, schema), data.draw(formats))
            commit(table, file)
            model += [(row, step, file.file_path, place) for place, row in enumerate(held)]
        elif kind == "equality":
            names = data.draw(st.sampled_from([["id"], ["kind"], ["id", "kind"]]))
            keys = [
                dict(zip(("id", "kind"), key, strict=True)) for key in data.draw(st.lists(KEYS, min_size=1, max_size=4))
            ]
            keys = [{name: key[name] for name in names} for key in keys]
            commit(table, equality_deletes(table, names, keys, data.draw(formats)))
            model = [each for each in model if {name: each[0][name] for name in names} not in keys]
        else:
            chosen = data.draw(st.lists(st.tuples(st.sampled_from(files), st.integers(0, 7)), min_size=1, max_size=6))
            if kind == "vector" and version == 3:
                file = chosen[0][0]
                if file.file_path in vectors:
                    continue
                gone = {place for _, place in chosen if place < file.record_count} or {0}
                gone |= {p for p in range(file.record_count) if not any(e[2:] == (file.file_path, p) for e in model)}
                vectors[file.file_path] = gone
                commit(table, *deletion_vectors(table, {file: gone}))
                model = [each for each in model if each[2] != file.file_path or each[3] not in gone]
            else:
                pairs = [(file.file_path, place) for file, place in chosen if file.file_path not in vectors]
                if not pairs or version == 3:
                    continue
                commit(table, position_deletes(table, pairs, data.draw(formats)))
                model = [each for each in model if (each[2], each[3]) not in pairs]
    expected = sorted(row["n"] for row, *_ in model)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == expected
    assert table.scan().count() == len(expected)
    some = [row["n"] for row, *_ in model if row["id"] is not None and row["id"] > 2]
    assert sorted(table.scan("id > 2", selected_fields=("n",)).to_arrow()["n"].to_pylist()) == sorted(some)
    found = table.scan(selected_fields=("n", "_pos", "_file")).to_arrow().to_pylist()
    assert {(row["n"], row["_file"], row["_pos"]) for row in found} == {(row["n"], *where) for row, _, *where in model}
