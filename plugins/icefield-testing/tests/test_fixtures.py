"""The fixtures for the tests of users, in projects of their own that pytest runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from fenced import Page, is_run

pytestmark = pytest.mark.slow
pytest_plugins = ["pytester"]

TESTS = """
import pyarrow as pa
import pytest
from icefield import MemoryFileSystem, Schema
from icefield.types import LongType, NestedField

seen = []


@pytest.mark.parametrize("number", range(4))
def test_each_catalog_is_new(icefield_catalog, icefield_table, number):
    assert icefield_catalog.list_namespaces() == [("db",)]
    assert icefield_catalog.list_tables("db") == []
    table = icefield_table([{"id": number}])
    assert table.name() == ("db", "t1")
    assert icefield_catalog.load_table("db.t1").scan().to_arrow().to_pylist() == [{"id": number}]
    assert table.location().startswith("memory://")
    seen.append(table.location())


def test_files_in_memory_go_with_their_test():
    assert not [file for file in MemoryFileSystem.files if file.startswith(tuple(seen) or ("memory://icefield-",))]


def test_rows_and_schemas_make_tables(icefield_table):
    assert icefield_table({"id": [1, 2]}).scan().count() == 2
    assert icefield_table(pa.table({"id": [1]}), "db.named").name() == ("db", "named")
    assert icefield_table(pa.schema({"id": pa.int64()})).columns == ["id"]
    parted = icefield_table(
        Schema(NestedField(1, "id", LongType())), partition_spec=["id"], properties={"format-version": 3}
    )
    assert parted.name() == ("db", "t3")
    assert (parted.format_version, len(parted.spec().fields), parted.scan().count()) == (3, 1, 0)


@pytest.mark.icefield_on_disk
def test_files_are_on_disk(icefield_table, tmp_path):
    table = icefield_table({"id": [1]})
    assert table.location() == (tmp_path / "warehouse/db/t1").as_uri()
    assert list(tmp_path.glob("warehouse/db/t1/data/*.parquet"))
"""

OVERRIDDEN = """
import pytest


@pytest.fixture
def icefield_properties(tmp_path):
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/lake.db", "warehouse": (tmp_path / "lake").as_uri()}


def test_the_catalog_is_the_project_s(icefield_catalog, icefield_table, tmp_path):
    assert icefield_table({"id": [1]}).location().startswith((tmp_path / "lake").as_uri())
    assert icefield_catalog.list_tables("db") == [("db", "t1")]
    assert (tmp_path / "lake.db").exists()
"""


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_project_tests_with_a_catalog_and_tables(pytester: pytest.Pytester, options: tuple[str, ...]) -> None:
    pytester.makepyfile(TESTS)
    ended = pytester.runpytest_subprocess("--strict-markers", "-p", "no:cacheprovider", *options)
    ended.assert_outcomes(passed=7)


def test_a_project_sets_the_properties_of_the_catalog(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OVERRIDDEN)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_run_without_the_fixtures_does_not_import_icefield(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\n\ndef test_absent():\n    assert 'icefield' not in sys.modules\n")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_pytest_explains_the_fixtures_and_the_marker(pytester: pytest.Pytester) -> None:
    ended = pytester.runpytest_subprocess("--fixtures")
    ended.stdout.fnmatch_lines(["icefield_catalog*", "*An empty catalog for one test, with the namespace db:*"])
    pytester.runpytest_subprocess("--markers").stdout.fnmatch_lines(["@pytest.mark.icefield_on_disk:*"])


def test_the_tests_that_the_guide_shows_pass(pytester: pytest.Pytester) -> None:
    blocks = [block.text for block in Page(Path("docs/guide/testing.md")).blocks if is_run(block)]
    *tests, conftest = blocks
    pytester.makepyfile("\n".join(tests))
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
    pytester.makeconftest(f"import pytest\nfrom pathlib import Path\n\n{conftest}")
    ended = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "total")
    ended.assert_outcomes(passed=1, deselected=1)
