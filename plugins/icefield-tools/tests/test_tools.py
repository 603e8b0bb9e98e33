"""A tool is imported by the package of its name, and by nothing else."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_distribution_imports_no_tool() -> None:
    code = "import icefield_tools, sys; print(sorted({'dlt', 'dagster', 'airflow', 'duckdb'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
