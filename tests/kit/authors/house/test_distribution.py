"""One installed distribution adds a part of each kind to new processes; ``test_grants.py`` shows the authorizer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from authors.house.opened import environment

# Nothing but the entry points of the distributions tells this process of their plugins.
PROGRAM = """
import sys
import icefield, pyarrow as pa
from icefield_maintenance.doctor import examine_table
from icefield_report import report

given = {"type": "directory", "warehouse": sys.argv[1], "grants.file": sys.argv[2]}
catalog = icefield.load_catalog("c", **given)
catalog.create_namespace("db")
rows = pa.table({"id": [1, 3, 2], "Bad Name": ["a", "b", "c"]})
table = catalog.create_table("db.t", rows.schema, properties={"write.format.default": "records"})
table.append(rows)
table.maintenance.rewrite_data_files(strategy="descending", rewrite_all=True)
page = report(table)
print([table.inspect.files()["file_format"][0].as_py().lower(), table.scan().to_arrow()["id"].to_pylist()])
print([group.name for group in examine_table(table) if group.name == "tidiness"])
print([who for who in ("bob", "audit") if f'<th scope="row">{who}</th><td>loadTable</td>' in page])
try:
    table.set_properties({"write.records.frame-rows": "0"})
except icefield.IcefieldError as error:
    print(error)
"""


def test_a_process_finds_all_parts_of_the_distribution(tmp_path: Path) -> None:
    found = environment(tmp_path)
    (tmp_path / "grants").write_text("bob loadTable db.t\n")

    def ran(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments], env=found, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    warehouse = f"file://{tmp_path}/warehouse"
    said = ran("-c", PROGRAM, warehouse, str(tmp_path / "grants")).splitlines()
    assert said[:3] == ["['records', [3, 2, 1]]", "['tidiness']", "['bob', 'audit']"]
    assert "'write.records.frame-rows': '0' is below 1" in said[3]
    options = ("--catalog", "c", "-p", "type=directory", "-p", f"warehouse={warehouse}", "--output", "json")
    icefield = ("-m", "icefield_cli.main")
    assert json.loads(ran(*icefield, "lint", "db.t", *options))["column"] == "Bad Name"
    listed = [json.loads(line) for line in ran(*icefield, "plugins", "--output", "json").splitlines()]
    assert [each["provides"] for each in listed if each["plugin"] == "house"] == ["file format records, command lint"]
