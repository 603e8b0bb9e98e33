"""The pytest plugin: fixtures with a catalog and tables for the tests of users, and what the kit needs of pytest.

A failed check of the kit shows the values in its assertion, like the author's own tests. The option
``--icefield-kit-version`` leaves out checks that are newer than a version of the kit.

This module is outside the package of the kit: pytest loads it for every run. Icefield is imported by the first test
that asks for a fixture, and only a test file imports the kit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from icefield import Catalog, Rows, Schema, Table
    from pyarrow import Schema as ArrowSchema

LEFT_OUT = "left out: new in version"
"""The beginning of the reason for skipping a check that is newer than the chosen version of the kit."""

_OPTION = "--icefield-kit-version"
_ON_DISK: Final = "icefield_on_disk"
_NAMESPACE: Final = "db"

pytest.register_assert_rewrite("icefield_testing")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses a version of the kit."""
    parser.getgroup("icefield").addoption(
        _OPTION,
        metavar="VERSION",
        help="run the checks that this version of the kit has; leave out checks that are newer",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of tests whose tables are on disk."""
    config.addinivalue_line("markers", f"{_ON_DISK}: the tables of the fixture icefield_catalog are files in tmp_path")


@pytest.fixture
def icefield_properties(request: pytest.FixtureRequest) -> dict[str, str]:
    """Properties of the fixture icefield_catalog: override it to test with another catalog.

    The files of tables are in memory, or in tmp_path for tests with the marker icefield_on_disk.
    """
    if request.node.get_closest_marker(_ON_DISK) is None:
        return {"type": "directory", "warehouse": f"memory://icefield-{uuid4().hex}"}
    folder: Path = request.getfixturevalue("tmp_path")
    return {"type": "directory", "warehouse": (folder / "warehouse").as_uri()}


@pytest.fixture
def icefield_catalog(icefield_properties: dict[str, Any]) -> Iterator[Catalog]:
    """An empty catalog for one test, with the namespace db: in memory, or as icefield_properties says."""
    from icefield import MemoryFileSystem, load_catalog

    warehouse = str(icefield_properties.get("warehouse", ""))
    with load_catalog("test", **icefield_properties) as catalog:
        catalog.create_namespace_if_not_exists(_NAMESPACE)
        yield catalog
    if warehouse.startswith("memory://"):  # else a long run would keep the tables of all tests
        for location in [location for location in MemoryFileSystem.files if location.startswith(f"{warehouse}/")]:
            MemoryFileSystem.files.pop(location, None)


@pytest.fixture
def icefield_table(icefield_catalog: Catalog) -> Callable[..., Table]:
    """A function that makes a table of icefield_catalog from rows or a schema.

    An example is icefield_table([{"id": 1}]). Rows are a frame, an Arrow table, a list of dicts or a dict of columns.
    The name is db.t1, db.t2, ... if none is given. Other arguments go to create_table, such as partition_spec=["day"]
    and properties={"format-version": 3}.
    """
    from icefield import Schema
    from pyarrow import Schema as ArrowSchema

    numbers = count(1)

    def make(rows: Rows | Schema | ArrowSchema, name: str | None = None, **options: Any) -> Table:
        name = name or f"{_NAMESPACE}.t{next(numbers)}"
        if isinstance(rows, Schema | ArrowSchema):
            return icefield_catalog.create_table(name, rows, **options)
        return icefield_catalog.create_table_as(name, rows, **options)

    return make


def pytest_collection_modifyitems(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Skip the checks that are newer than the chosen version of the kit, and say so."""
    given: str | None = config.getoption(_OPTION)
    if given is not None:
        _numbers(given, _OPTION)
    for item in items:
        new_in = getattr(getattr(item, "function", None), "new_in", None)
        suite = getattr(item, "cls", None)
        chosen = getattr(suite, "kit_version", None) or given
        if new_in is None or chosen is None:
            continue
        if _numbers(new_in, item.name) > _numbers(chosen, f"kit_version of {getattr(suite, '__name__', item.name)}"):
            item.add_marker(pytest.mark.skip(reason=f"{LEFT_OUT} {new_in} of the kit, and version {chosen} is chosen"))


def _numbers(version: str, where: str) -> tuple[int, ...]:
    """The numbers of a version. Raises ``UsageError`` for a string that is no version."""
    parts = version.split(".")
    if not all(part.isdecimal() for part in parts):
        raise pytest.UsageError(f"{where}: '{version}' is no version of the kit, such as 0.1")
    return tuple(map(int, parts))
