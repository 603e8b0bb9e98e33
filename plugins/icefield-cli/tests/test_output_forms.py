"""Rows as CSV, Parquet and JSON lines, printed and exported; and questions before files are deleted."""

from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from icefield.types import NestedField, UUIDType
from icefield_cli.main import main

Run = Callable[..., Any]
ROWS = pa.table(
    {
        "id": pa.array([1, 2**60], pa.int64()),
        "name": ['a "quoted", name\n', None],
        "at": pa.array([dt.datetime(2024, 1, 2, 3, 4, 5)] * 2, pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "data": [b"\x00\xff", b""],
        "tags": [["x", "y"], []],
        "place": [{"city": "Ulm"}, None],
    }
)


@pytest.fixture
def table(catalog: icefield.Catalog) -> icefield.Table:
    return catalog.create_table_as("db.kinds", ROWS)


def test_rows_are_printed_as_csv(run: Run, table: icefield.Table) -> None:
    ran = run("scan", "db.kinds", "--output", "csv")
    assert ran.status == 0
    options = csv.ParseOptions(newlines_in_values=True)
    found = csv.read_csv(io.BytesIO(ran.out.encode()), parse_options=options).to_pylist()
    assert [row["id"] for row in found] == [1, 2**60]
    assert found[0]["name"] == 'a "quoted", name\n'
    assert (found[0]["data"], found[0]["tags"], found[0]["place"]) == ("00ff", '["x", "y"]', '{"city": "Ulm"}')
    assert found[0]["price"] == 1.5
    assert str(found[0]["at"]).startswith("2024-01-02 03:04:05")


def test_rows_are_printed_as_parquet(table: icefield.Table, capsysbinary, properties: dict[str, str]) -> None:
    options = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]
    assert main(["scan", "db.kinds", "--output", "parquet", "--catalog", "test", *options]) == 0
    assert pq.read_table(io.BytesIO(capsysbinary.readouterr().out)).to_pylist() == ROWS.to_pylist()


def test_csv_has_every_row_by_default(run: Run, catalog: icefield.Catalog) -> None:
    catalog.create_table_as("db.many", pa.table({"id": range(50)}))
    assert len(run("scan", "db.many", "--output", "csv").lines) == 51
    assert len(run("scan", "db.many").lines) == 21


def test_json_lines_hold_one_object_each_also_for_one_record(run: Run, table: icefield.Table) -> None:
    assert [row["id"] for row in run("scan", "db.kinds", "--output", "jsonl").objects] == [1, 2**60]
    (line,) = run("describe", "db.kinds", "--output", "jsonl").lines
    assert json.loads(line)["table"] == "db.kinds"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_form_of_rows_is_wrong_usage_for_other_output(run: Run, table: icefield.Table, form: str) -> None:
    for command in (["describe", "db.kinds"], ["tables"], ["scan", "db.kinds", "--count"]):
        with pytest.raises(SystemExit) as ended:
            run(*command, "--output", form)
        assert ended.value.code == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_a_table_is_exported_to_a_file(run: Run, table: icefield.Table, tmp_path: Path, suffix: str) -> None:
    table.append(ROWS.slice(0, 1))
    target = tmp_path / f"out.{suffix}"
    assert run("export", "db.kinds", str(target), "--where", "id = 1").out == f"wrote 2 rows to {target.as_uri()}\n"
    if suffix == "parquet":
        assert pq.read_table(target).to_pylist() == [ROWS.to_pylist()[0]] * 2
    elif suffix == "csv":
        rows = csv.read_csv(target, parse_options=csv.ParseOptions(newlines_in_values=True))
        assert rows["id"].to_pylist() == [1, 1]
    else:
        assert [json.loads(line)["place"] for line in target.read_text().splitlines()] == [{"city": "Ulm"}] * 2
    again = run("export", "db.kinds", str(target))
    assert again.status == 1
    assert "exists already; delete it" in again.err
    target.unlink()
    assert run("export", "db.kinds", target.as_uri(), "--limit", "1").out.startswith("wrote 1 rows")


def test_an_export_that_fails_leaves_no_file(run: Run, table: icefield.Table, tmp_path: Path) -> None:
    for data in Path(table.location().removeprefix("file://"), "data").rglob("*.parquet"):
        data.unlink()
    target = tmp_path / "out.csv"
    assert run("export", "db.kinds", str(target)).status == 1
    assert [*tmp_path.glob("*out.csv*")] == []


def test_a_file_of_another_form_is_not_exported(run: Run, table: icefield.Table) -> None:
    assert "ends with .csv, .parquet, .jsonl" in run("export", "db.kinds", "out.xlsx").err


def test_uuids_are_strings_in_csv(run: Run, catalog: icefield.Catalog) -> None:
    table = catalog.create_table("db.u", icefield.Schema(NestedField(1, "u", UUIDType())))
    given = uuid.uuid4()
    table.append([{"u": given}])
    assert run("scan", "db.u", "--output", "csv").lines == ['"u"', f'"{given}"']


def test_purging_needs_a_yes(run: Run, table: icefield.Table, catalog: icefield.Catalog) -> None:
    refused = run("drop-table", "db.kinds", "--purge")
    assert refused.status == 1
    assert "Delete all files of db.kinds? Nobody can be asked here; --yes answers yes" in refused.err
    assert catalog.table_exists("db.kinds")
    assert run("drop-table", "db.kinds", "--purge", "--yes").status == 0
    assert not catalog.table_exists("db.kinds")


def test_a_shell_completes_names_of_tables(
    catalog: icefield.Catalog, table: icefield.Table, properties: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create_namespace("db.inner")
    options = " ".join(f"-p {key}={value}" for key, value in properties.items())

    def completed(begun: str, command: str = "scan") -> list[str]:
        from icefield_cli.command_line import GROUP

        words = f"icefield --catalog test {options} {command} {begun}"
        asked = {
            "_ICEFIELD_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - (1 if begun else 0)),
        }
        found = CliRunner().invoke(GROUP, [], env=asked, prog_name="icefield")
        return [line.removeprefix("plain,") for line in found.output.split()]

    assert completed("") == ["db."]
    assert completed("d") == ["db."]
    assert completed("db.") == ["db.inner.", "db.kinds"]
    assert completed("db.k") == ["db.kinds"]
    assert completed("nowhere.") == []
    assert completed("d", "namespaces") == ["db"]
