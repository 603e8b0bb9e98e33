"""Scripts of SQL run through ``ice.sql`` and through Iceberg's Java runtime: the same answers, tables and rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield import load_catalog
from servers.spark_runtime import SparkError, SparkRuntime
from servers.stock_spark import StockSpark
from sql_scripts import Line, Side, lines_of

# The scripts that change tables; `make soak` runs the others as well.
OFTEN = {"changes", "defaults", "evolving", "functions", "merging", "tables"}
SCRIPTS = sorted((Path(__file__).parent / "spark" / "statements").glob("*.sql"))
LOG = logging.getLogger(__name__)  # seen while the scripts run with `-o log_cli=true`
SETTINGS = {"spark.sql.leafNodeDefaultParallelism": "1", "spark.sql.shuffle.partitions": "1"}


def test_the_scripts_have_enough_statements() -> None:
    assert sum(len(lines_of(path)) for path in SCRIPTS) >= 250


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of Parquet files that no table has."""
    plain, parted = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("folders")
    pq.write_table(pa.table({"id": [1, 2], "part": ["a", "b"]}), plain / "one.parquet")
    pq.write_table(pa.table({"id": [3], "part": ["c"]}), plain / "two.parquet")
    for number, part in enumerate("xyz"):
        (parted / f"part={part}").mkdir()
        pq.write_table(pa.table({"id": [number]}), parted / f"part={part}" / "one.parquet")
    return {"files": str(plain), "folders": str(parted)}


@pytest.fixture
def sides(
    spark_runtime: SparkRuntime,
    stock_spark: StockSpark,
    tmp_path: Path,
    files: dict[str, str],
    request: pytest.FixtureRequest,
) -> Iterator[tuple[Side, Side]]:
    """Icefield on stock Spark and Iceberg's runtime, each with a catalog of its own with the namespace ``db``."""
    lake = f"lake_{request.node.callspec.id}"
    with ExitStack() as stack:
        found = []
        for name in ("here", "there"):
            folder = tmp_path / name
            folder.mkdir()
            warehouse = f"file://{folder}/warehouse"
            given = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": warehouse}
            catalog = stack.enter_context(load_catalog(lake, **given))
            if name == "here":
                stock_spark.attach(lake, **given)
                run = lambda string: stock_spark.run(lake, string)  # noqa: E731
            else:
                spark_runtime.shared_catalog(lake, f"jdbc:sqlite:{folder}/catalog.db", folder / "warehouse")
                run = spark_runtime.run
            found.append(Side(run, catalog, {"lake": lake, "warehouse": f"{folder}/warehouse", **files}))
        here, there = found
        there.run(f"USE {lake}")
        for side in found:
            for key, value in SETTINGS.items():
                side.run(f"SET {key} = {value}")
            side.run("CREATE NAMESPACE " + ("db" if side is there else f"{lake}.db"))
        yield here, there
        there.run("USE spark_catalog")
        for side in found:
            for key in SETTINGS:
                side.run(f"RESET {key}")
        there.run("SET spark.sql.shuffle.partitions = 2")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in OFTEN else pytest.mark.soak) for path in SCRIPTS],
)
@pytest.mark.spec("VER-13")
def test_both_answer_the_same_and_leave_the_same_tables(sides: tuple[Side, Side], path: Path) -> None:
    here, there = sides
    differences, known = [], ""
    for line in lines_of(path):
        found = different(line, answered(here, line), answered(there, line))
        left = difference(here.state(), there.state())
        if line.only is None and left != known:
            known = left
            found.append(f"tables: {left or 'the same again'}")
        if found:
            differences.append("\n  ".join([line.string, *found]))
            LOG.info("%s", differences[-1])
    assert not differences, "\n\n".join(differences)


def different(line: Line, here: object, there: object) -> list[str]:
    """The unexpected differences of two answers; a string is the error of a side that refused the statement."""
    refused = {None: (line.refused, line.refused), "here": (False, True), "there": (True, False)}[line.only]
    expected = (isinstance(here, str), isinstance(there, str)) == refused
    if expected and (any(refused) or not line.compares_answer or here == there):
        return []
    return [f"answers: {difference(here, there)}"]


def answered(side: Side, line: Line) -> object:
    """The answer of a statement, or the string of its error."""
    try:
        return side.answer(line)
    except SparkError as error:
        return str(error)[:400]


def difference(here: object, there: object, path: str = "") -> str:
    """Where two trees differ."""
    if isinstance(here, dict) and isinstance(there, dict):
        keys = sorted(here.keys() | there.keys())
        found = [difference(here.get(key), there.get(key), f"{path}/{key}") for key in keys]
        return "".join(each for each in found if each)
    if isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        return "".join(difference(*each, f"{path}/{at}") for at, each in enumerate(zip(here, there, strict=True)))
    return "" if here == there else f"\n    {path}\n      here:  {here}\n      there: {there}"
