"""An adapter is loaded only when it is used, and says what to install when its library is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from icefield.errors import MissingPlugin
from icefield_frames import libraries
from icefield_frames.hooks import METHODS
from tables import memory_catalog, rows

CALLS = {"to_duckdb": ("t",), "to_datafusion": ("t",)}


@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"to_dataset"}))
def test_a_missing_library_is_stated_before_anything_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "find_spec", {}.get)
    table = memory_catalog().create_table("db.t", rows([1]).schema)
    table.append(rows([1]))
    with pytest.raises(
        MissingPlugin, match=rf'{name} needs \w+, which is not installed; pip install "icefield\[\w+\]"'
    ):
        getattr(table.scan("no_such = 1"), name)(*CALLS.get(name, ()))


def test_no_library_is_imported_before_its_adapter_is_used() -> None:
    # pyarrow imports pandas itself.
    code = (
        "import sys, icefield, pyarrow as pa\n"
        "catalog = icefield.load_catalog('x', type='directory', warehouse='memory://lazy')\n"
        "catalog.create_namespace('db')\n"
        "table = catalog.create_table('db.t', pa.schema([('n', pa.int64())]))\n"
        "table.append(pa.table({'n': [1]}))\n"
        "assert table.scan().to_dataset().count_rows() == 1\n"
        "assert 'lazy' in dir(table.scan())\n"
        "print({'polars', 'duckdb', 'datafusion', 'dask', 'ray', 'daft'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("set()", "")


def test_methods_are_bound_to_their_scan_and_documented() -> None:
    table = memory_catalog().create_table("db.t", rows([1]).schema)
    scan: Any = table.scan()
    for name in METHODS:
        method = getattr(scan, name)
        assert method.__self__ is scan
        assert method.__name__ == name
        assert method.__doc__


def test_type_checkers_know_every_method() -> None:
    from icefield_frames import ScanMethods

    assert METHODS.keys() == _stated_in(ScanMethods)


def _stated_in(owner: type) -> set[str]:
    import ast
    import inspect

    (stated,) = (node for node in ast.walk(ast.parse(inspect.getsource(owner))) if isinstance(node, ast.ClassDef))
    return {node.name for node in ast.walk(stated) if isinstance(node, ast.FunctionDef)}
