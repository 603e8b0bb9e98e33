"""Errors of tasks, made errors again."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import icefield
import pyarrow as pa
import pytest
from icefield import errors
from icefield.errors import FileMissing
from icefield_spark.failures import original
from pyspark.errors import PythonException

TRACEBACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "conforming.py", line 217, in _check_nulls
    raise _refused(path, "icefield.errors.InvalidSchema: not this one", field_id=field.field_id)
icefield.errors.{name}: {message}
"""


@pytest.mark.parametrize("name", ["InvalidArgument", "StorageError", "FileMissing", "UnsupportedFeature"])
def test_an_error_of_icefield_comes_back_as_itself(name: str) -> None:
    found = original(PythonException(TRACEBACK.format(name=name, message="column 'id': it holds a null")))
    assert type(found) is getattr(errors, name)
    assert str(found) == "column 'id': it holds a null"


def test_of_errors_that_caused_one_another_the_last_counts() -> None:
    text = TRACEBACK.format(name="FileMissing", message="first") + TRACEBACK.format(name="InvalidFile", message="last")
    assert str(original(PythonException(text))) == "last"


def test_an_error_without_a_traceback_comes_back_as_itself() -> None:
    text = "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: icefield.errors.FileMissing: x is gone\n"
    found = original(PythonException(text))
    assert type(found) is errors.FileMissing
    assert str(found) == "x is gone"


@pytest.mark.parametrize("name", ["Any", "annotations", "NoSuchError"])
def test_another_error_is_left_as_it_is(name: str) -> None:
    assert original(PythonException(TRACEBACK.format(name=name, message="text"))) is None
    assert original(PythonException("ValueError: no")) is None


@pytest.fixture
def incomplete(catalog: icefield.Catalog) -> icefield.Table:
    """A table whose only file, which Spark's own reader does not read, is gone."""
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})
    table = catalog.create_table("db.t", rows.schema, properties={"write.format.default": "avro"})
    table.append(rows)
    Path(urlsplit(table.inspect.data_files()["file_path"][0].as_py()).path).unlink()
    return table


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM db.t WHERE id % 2 = 0",
        "DELETE FROM db.t WHERE id = 2",
        "UPDATE db.t SET name = 'x' WHERE id = 2",
        "MERGE INTO db.t t USING db.t s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "INSERT INTO db.t SELECT * FROM db.t",
        "CALL test.system.rewrite_data_files(table => 'db.t', options => map('rewrite-all', 'true'))",
    ],
)
def test_a_statement_that_fails_raises_what_its_task_raised(
    ice: Any, incomplete: icefield.Table, statement: str
) -> None:
    with pytest.raises(FileMissing) as raised:
        ice.sql(statement)
    assert "Traceback" not in f"{raised.value}{raised.value.__cause__}"


@pytest.mark.slow
@pytest.mark.spark
def test_a_frame_that_fails_tells_the_cause_alone(ice: Any, incomplete: icefield.Table) -> None:
    ice.sql("CALL test.system.create_changelog_view(table => 'db.t', changelog_view => 'changes_of_t')")
    actions = [
        lambda: ice.table("db.t").collect(),
        lambda: ice.sql("SELECT id FROM db.t WHERE name > 'a'").collect(),
        lambda: ice.spark.table("changes_of_t").collect(),
        lambda: ice.sql("SELECT system.bucket(id - id, name) FROM VALUES (1, 'a') AS v(id, name)").collect(),
    ]
    for action in actions:
        with pytest.raises(Exception, match=r"icefield\.errors\.\w+: |is at least 1") as raised:
            action()
        assert "Traceback" not in str(raised.value)
    ice.spark.catalog.dropTempView("changes_of_t")
    with pytest.raises(FileMissing):
        ice.count("db.t", "name > 'a'")
