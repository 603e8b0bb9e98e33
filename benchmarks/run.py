"""Run every benchmark, each in a process of its own, and say which reached its factors. ``make bench`` calls this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    missed = []
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"\n== {path.name}", flush=True)
        if subprocess.run([sys.executable, str(path)], check=False).returncode:
            missed.append(path.name)
    print(f"\n{'missed: ' + ', '.join(missed) if missed else 'every factor was reached'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
