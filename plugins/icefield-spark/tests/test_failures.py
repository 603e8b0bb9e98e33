"""Errors of tasks, made errors again."""

from __future__ import annotations

import pytest
from icefield import errors
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
