"""Replay a history of commits under several schedules, and print the costs of scans and rewrites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

from icefield_cli import Context, Row, WrongUsage, size

from icefield_maintenance.tend import Goals, Policy
from icefield_maintenance.tend.goals import PRESETS, goals_in
from icefield_maintenance.tend.histories import generated, recorded
from icefield_maintenance.tend.simulator import NEVER, NIGHTLY, History, Schedule, simulate

_COLUMNS = ("schedule", "scan_cost", "scan_requests", "scan_bytes", "rewritten", "debt")
_HOUR_MS = 3_600_000


def run(
    context: Context,
    policy: str | None,
    table: str | None,
    kind: str | None,
    tables: int,
    days: int,
    every: int,
    scans: int | None,
    partitions: int | None,
) -> None:
    """Run the command."""
    if not (days and every and tables) or partitions == 0:
        raise WrongUsage("--days, --every, --tables and --partitions must not be 0")
    schedules = {"none": NEVER, "nightly": NIGHTLY}
    schedules |= {name: Schedule(goals=goals, every=every / _HOUR_MS) for name, goals in PRESETS.items()}
    if table is not None:
        found = context.table(table)
        histories = [recorded(found)]
        if policy is not None:
            goals = Policy.from_file(policy).goals_of(found.name()) or Goals()
            goals, faults = goals_in(found.properties, goals)
            for fault in faults:
                context.hint(fault)
            schedules["policy"] = Schedule(goals=goals, every=every / _HOUR_MS)
    else:
        assert kind is not None
        histories = [generated(kind, seed, days) for seed in range(tables)]
    histories = [_read(each, scans, partitions) for each in histories]
    context.rows(_rows(histories, schedules, days), _COLUMNS, _for_people)


def _read(history: History, scans: int | None, partitions: int | None) -> History:
    return replace(
        history,
        scans_per_day=history.scans_per_day if scans is None else scans,
        scanned_partitions=history.scanned_partitions if partitions is None else partitions,
    )


def _rows(histories: list[History], schedules: dict[str, Schedule], days: int) -> Iterator[Row]:
    for name, schedule in schedules.items():
        costs = simulate(histories, schedule, days=days)
        yield {"schedule": name, "scan_cost": costs.scan_cost, **asdict(costs)}


def _for_people(row: Row) -> Row:
    return {
        **row,
        "scan_cost": size(int(row["scan_cost"])),
        "scan_requests": f"{row['scan_requests']:,.0f}",
        "scan_bytes": size(int(row["scan_bytes"])),
        "rewritten": size(row["rewritten_bytes"]),
        "debt": f"{row['debt']:.1f}",
    }
