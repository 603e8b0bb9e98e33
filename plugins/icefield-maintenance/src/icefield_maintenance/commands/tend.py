"""Keep the tables of the catalog at the goals of a policy, and of their properties."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import chain

from icefield.errors import IcefieldError
from icefield_cli import Context, Row, size

from icefield_maintenance.tend import Policy, Tending

_COLUMNS = ("table", "operation", "outcome", "requests", "bytes", "rewritten", "because")
_OF_PROPERTIES = {"rules": [{"tables": "*"}]}


def run(context: Context, policy: str | None, tables: tuple[str, ...], every: int | None, dry_run: bool) -> None:
    """Run the command."""
    if policy is None:
        policy = context.all_properties().get("tend.policy")
    chosen = Policy.from_mapping(_OF_PROPERTIES) if policy is None else Policy.from_file(policy)
    tending = Tending(context.catalog, chosen)
    names = [context.catalog.load_table(each).name() for each in tables] or None
    is_told = False
    while True:
        began = time.monotonic()
        outcomes: Counter[str] = Counter()
        try:
            tended = [*tending.names(names)]
            if not tended and not is_told:
                context.hint("no rule or erasure names one of the tables: nothing is done")
                is_told = True
            rows = _rows(tending, tended, dry_run, outcomes)
            first = next(rows, None)
            if first is not None:  # a round without an operation prints no heading
                context.rows(chain([first], rows), _COLUMNS, _for_people)
        except IcefieldError as error:
            if every is None:
                raise
            context.hint(f"this round has failed, and the next one follows: {error}")
        if every is None:
            break
        sys.stdout.flush()
        time.sleep(max(0.0, every / 1000 - (time.monotonic() - began)))
    if tended and not outcomes:
        context.hint("1 table is at its goals" if len(tended) == 1 else f"{len(tended):,} tables are at their goals")
    if failed := outcomes["failed"] + outcomes["overdue"]:
        raise IcefieldError(f"{failed:,} of {outcomes.total():,} operations failed, or are overdue")


def _rows(tending: Tending, names: list[tuple[str, ...]], dry_run: bool, outcomes: Counter[str]) -> Iterator[Row]:
    for operation in tending.run(names, dry_run=dry_run):
        outcomes[operation.outcome] += 1
        yield {**asdict(operation), "at": operation.at.isoformat(timespec="milliseconds")}


def _for_people(row: Row) -> Row:
    measure, rewritten = ("measured", "rewritten_bytes") if row["outcome"] == "done" else ("planned", "planned_rewrite")
    return {
        **row,
        "requests": _change(row[f"{measure}_requests"], "{:,}".format),
        "bytes": _change(row[f"{measure}_bytes"], size),
        "rewritten": size(row[rewritten]),
        "because": row["message"] or row["reason"],
    }


def _change(gain: int, shown: Callable[[int], str | None]) -> str:
    """The change of the cost of a scan: it falls by a gain."""
    sign = "-" if gain > 0 else "+" if gain else ""
    return f"{sign}{shown(abs(gain))}"
