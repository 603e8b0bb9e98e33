"""How changes of rows change files: rewritten where the table allows it, refused where it asks for delete files."""

from __future__ import annotations

import pytest
from icefield.errors import UnsupportedFeature
from tables import ids, new_table, rows, stored_files

ON_READ = {f"write.{change}.mode": "merge-on-read" for change in ("delete", "update", "merge")}


@pytest.mark.parametrize("change", ["delete", "overwrite", "upsert"])
def test_rewriting_a_file_is_refused_where_the_table_asks_for_merge_on_read(change: str) -> None:
    mode = "write.merge.mode" if change == "upsert" else "write.delete.mode"
    table = new_table(**ON_READ)
    table.append(rows([1, 2, 3]))
    before = stored_files(table)
    changes = {
        "delete": lambda: table.delete("id = 2"),
        "overwrite": lambda: table.overwrite(rows([9]), "id = 2"),
        "upsert": lambda: table.upsert(rows([2], value=9.0), ["id"]),
    }
    with pytest.raises(UnsupportedFeature, match=rf"{mode}.*merge-on-read.*set it to 'copy-on-write'") as caught:
        changes[change]()
    assert caught.value.property == mode
    assert (ids(table.refresh()), stored_files(table)) == ([1, 2, 3], before)
    table.set_properties({mode: "Copy-On-Write"})
    changes[change]()
    assert ids(table) == {"delete": [1, 3], "overwrite": [1, 3, 9], "upsert": [1, 2, 3]}[change]


def test_what_rewrites_no_file_is_done_under_merge_on_read() -> None:
    table = new_table("kind", **ON_READ)
    table.append(rows([1, 2], "a"))
    table.append(rows([3], "b"))
    table.delete("kind = 'a'")
    table.delete("kind = 'b' and id = 99")
    table.upsert(rows([3, 4], "b"), ["id"])
    table.overwrite(rows([5], "c"), "kind = 'c'")
    assert ids(table) == [3, 4, 5]
    table.dynamic_partition_overwrite(rows([6], "b"))
    assert ids(table) == [5, 6]
    table.delete()
    assert ids(table) == []
