"""Print the requirements that tests show; fail when tests no longer show a listed requirement.

A test shows a requirement by naming its id: ``@pytest.mark.spec("PART-07")``. ``shown.txt`` next to this file lists the
ids that were shown, those of both levels (M and X); ``--update`` writes it anew.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROW = re.compile(r"^\| ([A-Z0-9]+-\d+) \| ([MX]) \|", re.MULTILINE)


class Collector:
    """A pytest plugin that notes the ids of every collected test."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for marker in item.iter_markers("spec"):
                for identifier in marker.args:
                    self.tests[identifier].add(item.nodeid)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the ids that are shown now to shown.txt")
    arguments = parser.parse_args()
    levels = dict(ROW.findall((HERE / "requirements.md").read_text("utf-8")))
    collector = Collector()
    with redirect_stdout(StringIO()) as said:  # the list of tests, or why they cannot be collected
        status = pytest.main(["--collect-only", "-qq", "--no-header"], plugins=[collector])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        print(said.getvalue()[-5_000:], file=sys.stderr)
        return 1
    shown = set(collector.tests)
    print_table(levels, shown)
    listed = HERE / "shown.txt"
    if arguments.update:
        listed.write_text("".join(f"{i}\n" for i in sorted(shown & set(levels))), "utf-8")
    before = set(listed.read_text("utf-8").split()) if listed.exists() else set()
    unknown, lost = sorted(shown - set(levels)), sorted(before - shown)
    if unknown:
        print(f"tests name ids that requirements.md does not have: {', '.join(unknown)}", file=sys.stderr)
    if lost:
        print(f"shown before and no longer: {', '.join(lost)}", file=sys.stderr)
    return 1 if unknown or lost else 0


def print_table(levels: dict[str, str], shown: set[str]) -> None:
    areas: dict[str, list[str]] = defaultdict(list)
    for identifier in levels:
        areas[identifier.partition("-")[0]].append(identifier)
    print(f"{'area':8} {'M shown':>9} {'X shown':>9}   not shown")
    for area, identifiers in areas.items():
        counts = []
        for level in "MX":
            of_level = [i for i in identifiers if levels[i] == level]
            counts.append(f"{sum(i in shown for i in of_level)}/{len(of_level)}")
        missing = [f"{i[len(area) + 1 :]}{'' if levels[i] == 'M' else 'x'}" for i in identifiers if i not in shown]
        print(f"{area:8} {counts[0]:>9} {counts[1]:>9}   {' '.join(missing)}")


if __name__ == "__main__":
    sys.exit(main())
