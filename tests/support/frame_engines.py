"""Tests against Ray, Daft and Dask, in an environment of their own: ``frame_engines.py [--bench]``.

The environment is kept in ``.venv/engines``. ``--bench`` then compares with the engines' own readers.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib

from environments import environment, run_tests
from repository import ROOT

_PLUGINS = ("avro", "cli", "frames", "import", "maintenance", "orc", "parquet", "sql", "testing")


def main(arguments: list[str]) -> int:
    """Run the tests, and the benchmark if it is asked for; return the exit status."""
    group = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]["engines"]
    plugins = [f"icefield-{name}" for name in _PLUGINS]
    python = environment(ROOT / ".venv" / "engines", sys.executable, plugins, group)
    passed, _ = run_tests(
        python, ["plugins/icefield-frames/tests/engines", *(each for each in arguments if each != "--bench")]
    )
    if passed and "--bench" in arguments:
        passed = subprocess.run([python, ROOT / "benchmarks" / "bench_engines.py"], check=False).returncode == 0
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
