"""Tables under random changes, compared with a naive model: every version, read in every way.

Columns are random and nested. The rows of the model are compared with the rows of the table, and with the rows that
DuckDB and PyIceberg read, where they can read the table. A failure prints the steps, and the values with which
Hypothesis runs them again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from naive_filters import naive
from peer_readings import PeerReadings
from table_machine.rows import RowRules
from table_machine.shape import ShapeRules
from table_machine.state import FORMATS, SOAK, as_table
from table_model import (
    every,
    path_of,
    shape_of,
    shapes,
)


class TableMachine(RowRules, ShapeRules):
    """Each rule changes the table and the model alike; ``scan`` compares."""

    @rule(data=st.data())
    def scan(self, data: st.DataObject) -> None:
        asked, rows, columns = self.version(data)
        given = self.filter(data, columns)
        chance = self.chance(data)
        paths = [".".join(path_of(columns, column.key)) for column in every(columns)]
        names = tuple(chance.sample(paths, chance.randint(0, min(4, len(paths)))))
        scan = self.table.scan(given, selected_fields=names or ("*",), **asked)
        wanted = [row for row in rows if naive(given, row) is True]
        self.same(scan.to_arrow(), wanted, scan.projection)
        assert scan.count() == len(wanted)
        limit = data.draw(st.integers(0, 3))
        assert self.table.scan(given, limit=limit, **asked).to_arrow().num_rows == min(limit, len(wanted))
        assert self.table.scan(given, limit=limit, **asked).count() == min(limit, len(wanted))
        self.same(self.read_in_pieces(scan), wanted, scan.projection)
        places = self.table.scan(given, selected_fields=("_pos", "_file"), **asked).to_arrow().to_pylist()
        assert len({(place["_file"], place["_pos"]) for place in places}) == len(places) == len(wanted)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def read_what_was_held(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.same(held.table.scan().to_arrow(), held.rows, held.table.schema())

    @precondition(lambda self: self.heads["main"] is not None)
    @rule()
    def peers_read_the_same(self) -> None:
        rows = self.state("main").seen(self.columns)
        self.peers.compare(self.table, as_table(rows, self.table.schema()))

    @invariant()
    def the_columns_are_those_of_the_model(self) -> None:
        self.counts["steps"] += 1
        assert [shape_of(field) for field in self.table.schema().fields] == shapes(self.columns)
        names = {".".join(path_of(self.columns, key)) for key in self.identifiers}
        assert self.table.schema().identifier_field_names() == names

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        for number, state in self.states.items():
            if number is not None:
                scan = self.table.scan(snapshot_id=number)
                self.same(scan.to_arrow(), state.seen(), scan.projection)
        if self.heads["main"] is not None:
            self.peers_read_the_same()
        shutil.rmtree(self.root)


@pytest.fixture(scope="module")
def peers() -> Iterator[PeerReadings]:
    with PeerReadings.opened() as opened:
        yield opened


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.parametrize("file_format", [*FORMATS, "mixed"])
@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.spec("SCAN-43", "SCAN-60", "META-26", "SCH-30", "SCAN-62", "SCAN-63", "SCH-03", "PART-07", "COMMIT-10")
def test_any_changes_leave_the_rows_that_a_naive_model_has(format_version, file_format, tmp_path, peers, capsys):
    peers.start()
    counts: Counter[str] = Counter()
    given = {"format_version": format_version, "file_format": file_format, "folder": tmp_path}
    machine = type("Machine", (TableMachine,), {**given, "peers": peers, "counts": counts})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    examples, steps = (40, 40) if SOAK else (3, 12)
    # Shrinking a run of many steps takes minutes, so only `make soak` shrinks.
    phases = [phase for phase in Phase if SOAK or phase is not Phase.shrink]
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases,
        deadline=None,
        print_blob=True,
        suppress_health_check=checks,
    )
    run_state_machine_as_test(machine, settings=chosen)
    with capsys.disabled():
        if SOAK:
            print(f"\nversion {format_version}, {file_format}: {dict(counts)}, {peers.told()}")
    peers.check(file_format)
