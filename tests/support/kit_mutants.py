"""Counts the broken plugins in ``tests/kit/mutants`` that the kit rejects: ``kit_mutants.py [--workers N]``.

Prints a row for each contract, and the mutants that pass. The exit status is 1 if one passes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

from repository import ROOT

CONTRACTS = {
    "catalogs": "catalogs",
    "strategies": "commit strategies",
    "formats": "file formats",
    "file_systems": "file systems",
    "key_services": "key services",
    "listeners": "listeners",
}
"""The contracts with broken plugins, by the name of their module in ``tests/kit/mutants``."""


def main() -> int:
    """Try every mutant, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="3", help="processes at a time (%(default)s)")
    workers = parser.parse_args().workers
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        modules = [f"tests/kit/test_broken_{name}.py" for name in CONTRACTS]
        options = ["-q", "-n", workers, "-m", "", "-k", "test_a_broken_", f"--junitxml={report}"]
        subprocess.run([sys.executable, "-m", "pytest", *options, *modules], cwd=ROOT, stdout=sys.stderr)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    tried = Counter(_contract(case) for case in cases)
    passed = [case for case in cases if len(case)]  # a failed test has an element with its error
    missed = Counter(map(_contract, passed))
    print(f"| icefield-testing {version('icefield-testing')} | Broken plugins | Rejected |\n| --- | --- | --- |")
    for contract in CONTRACTS.values():
        print(f"| {contract} | {tried[contract]} | {tried[contract] - missed[contract]} |")
    print(*(f"not rejected: {case.get('name')}" for case in passed), sep="\n", end="\n" if passed else "")
    return 1 if passed or not cases else 0


def _contract(case: ElementTree.Element) -> str:
    return CONTRACTS[str(case.get("classname")).rsplit("test_broken_", 1)[1]]


if __name__ == "__main__":
    sys.exit(main())
