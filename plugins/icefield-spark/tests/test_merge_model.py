"""MERGE, UPDATE and DELETE of random tables with random clauses, compared with rows in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import icefield
import pytest
from icefield.errors import InvalidArgument

pytestmark = pytest.mark.spark

Row = tuple[Any, ...]
Holds = Callable[[Row | None, Row | None], bool | None]
ID, PART, VAL, NAME = range(4)
COLUMNS = "id long, part int, val long, name string"
_SEVERAL = "several"


@dataclass(frozen=True)
class Condition:
    """A condition in SQL, and what it is of a row of each side; None is neither true nor false."""

    sql: str
    holds: Holds


@dataclass(frozen=True)
class Clause:
    """A WHEN: of which rows, on which condition, and what becomes of them."""

    sql: str
    of: str
    condition: Condition
    row: Callable[[Row, Row], Row | None]
    """The new row; None deletes."""
    is_bare_delete: bool = False


def sum_of(left: int | None, right: int) -> int | None:
    return None if left is None else left + right


def less(left: int | None, right: int | None) -> bool | None:
    return None if left is None or right is None else left < right


def same(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left == right


ON = [
    Condition("t.id = s.id", lambda t, s: same(t[ID], s[ID])),
    Condition("s.id = t.id AND t.part = s.part", lambda t, s: same(t[ID], s[ID]) and same(t[PART], s[PART])),
    Condition("t.id = s.id AND t.part > 0", lambda t, s: same(t[ID], s[ID]) and less(0, t[PART])),
    Condition("t.id = s.id AND s.val > 3", lambda t, s: same(t[ID], s[ID]) and less(3, s[VAL])),
    Condition("t.id <=> s.id", lambda t, s: t[ID] == s[ID]),
    Condition("t.name = s.name", lambda t, s: same(t[NAME], s[NAME])),
    Condition("t.id + 1 = s.id", lambda t, s: same(sum_of(t[ID], 1), s[ID])),
]
ALWAYS = Condition("", lambda t, s: True)
OF_TARGET = [
    ALWAYS,
    Condition("t.part = 2", lambda t, s: same(t[PART], 2)),
    Condition("t.val < 5", lambda t, s: less(t[VAL], 5)),
    Condition("t.id IS NULL", lambda t, s: t[ID] is None),
    Condition("NOT (t.val < 5)", lambda t, s: None if (found := less(t[VAL], 5)) is None else not found),
]
OF_SOURCE = [
    ALWAYS,
    Condition("s.part <> 1", lambda t, s: None if s[PART] is None else s[PART] != 1),
    Condition("s.val < 5", lambda t, s: less(s[VAL], 5)),
    Condition("s.id IS NOT NULL", lambda t, s: s[ID] is not None),
]
OF_BOTH = [*OF_TARGET, *OF_SOURCE, Condition("t.val < s.val", lambda t, s: less(t[VAL], s[VAL]))]


def clause(chance: random.Random, of: str) -> Clause:
    choices = {"MATCHED": OF_BOTH, "NOT MATCHED": OF_SOURCE, "NOT MATCHED BY SOURCE": OF_TARGET}[of]
    condition = chance.choice(choices)
    if of == "NOT MATCHED":
        then, row = chance.choice(
            [
                ("INSERT *", lambda t, s: s),
                (
                    "INSERT (name, id) VALUES (concat(s.name, '+'), s.id)",
                    lambda t, s: (s[ID], None, None, s[NAME] + "+"),
                ),
            ]
        )
    elif chance.random() < 0.4:
        then, row = "DELETE", lambda t, s: None
    elif of == "MATCHED":
        then, row = chance.choice(
            [
                ("UPDATE SET *", lambda t, s: s),
                ("UPDATE SET val = t.val + 1", lambda t, s: (t[ID], t[PART], sum_of(t[VAL], 1), t[NAME])),
                ("UPDATE SET t.part = s.part, val = s.val", lambda t, s: (t[ID], s[PART], s[VAL], t[NAME])),
                ("UPDATE SET id = NULL, name = s.name", lambda t, s: (None, t[PART], t[VAL], s[NAME])),
            ]
        )
    else:
        then, row = "UPDATE SET part = 3, val = val + 1", lambda t, s: (t[ID], 3, sum_of(t[VAL], 1), t[NAME])
    sql = f"WHEN {of}{f' AND {condition.sql}' if condition.sql else ''} THEN {then}"
    return Clause(sql, of, condition, row, of == "MATCHED" and then == "DELETE" and condition is ALWAYS)


def allowed(clauses: list[Clause]) -> list[Clause]:
    """The clauses by kind; of one kind one alone has no condition, and is the last, as Spark wants it."""
    found = sorted(clauses, key=lambda each: (each.of, each.condition is ALWAYS))
    following = [*(each.of for each in found[1:]), None]
    return [
        each for each, after in zip(found, following, strict=True) if each.condition is not ALWAYS or each.of != after
    ]


def merged(table: list[Row], source: list[Row], on: Condition, clauses: list[Clause]) -> list[Row] | str:
    """The table after a MERGE, or ``several`` where it is refused."""

    def chosen(of: str, t: Any, s: Any) -> Clause | None:
        return next((each for each in clauses if each.of == of and each.condition.holds(t, s)), None)

    matched = [each for each in clauses if each.of == "MATCHED"]
    may_repeat = not matched or (len(matched) == 1 and matched[0].is_bare_delete)
    after: list[Row] = []
    met: set[int] = set()
    for t in table:
        found = [at for at, s in enumerate(source) if on.holds(t, s)]
        met.update(found)
        if len(found) > 1 and not may_repeat:
            return _SEVERAL
        taken = chosen("MATCHED", t, source[found[0]]) if found else chosen("NOT MATCHED BY SOURCE", t, None)
        row = t if taken is None else taken.row(t, source[found[0]] if found else ())
        after += [row] if row is not None else []
    for at, s in enumerate(source):
        taken = None if at in met else chosen("NOT MATCHED", None, s)
        row = None if taken is None else taken.row((), s)
        after += [row] if row is not None else []
    return after


def some_rows(chance: random.Random, count: int, ids: int, name: str) -> list[Row]:
    return [
        (
            None if chance.random() < 0.1 else chance.randrange(ids),
            None if chance.random() < 0.1 else chance.randrange(4),
            None if chance.random() < 0.2 else chance.randrange(10),
            f"{name}{chance.randrange(ids)}",
        )
        for _ in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "mode", "partitions", "seed", "turns"),
    [
        (2, "copy-on-write", ["part"], 1, 3),
        (2, "merge-on-read", [], 2, 3),
        (3, "merge-on-read", ["bucket[3](id)"], 3, 3),
        pytest.param(2, "copy-on-write", [], 4, 60, marks=pytest.mark.soak),
        pytest.param(2, "merge-on-read", ["part"], 5, 60, marks=pytest.mark.soak),
        pytest.param(3, "copy-on-write", ["part"], 6, 60, marks=pytest.mark.soak),
        pytest.param(3, "merge-on-read", [], 7, 60, marks=pytest.mark.soak),
    ],
)
def test_statements_agree_with_rows_in_python(
    ice: Any,
    catalog: icefield.Catalog,
    version: int,
    mode: str,
    partitions: list[str],
    seed: int,
    turns: int,
) -> None:
    """Null keys, keys that repeat on both sides, conditions that are neither true nor false."""
    chance = random.Random(seed)
    model = some_rows(chance, 40, 40, "n")
    modes = {f"write.{kind}.mode": mode for kind in ("delete", "update", "merge")}
    frame = ice.spark.createDataFrame(model, COLUMNS).repartition(3)
    properties = {"format-version": version, **modes}
    ice.create_table_as(frame, "db.t", partition_spec=partitions, properties=properties)

    def check(statement: str) -> None:
        found = sorted(map(tuple, ice.sql("SELECT id, part, val, name FROM db.t").collect()), key=repr)
        assert found == sorted(model, key=repr), statement

    check("the first rows")
    refused = 0
    for turn in range(turns):
        # Few rows of the source, so that not every merge is refused for keys that repeat.
        source = some_rows(chance, chance.randrange(0, 7), 45, "n")
        ice.spark.createDataFrame(source, COLUMNS).createOrReplaceTempView("given")
        on = ON[(turn + seed) % len(ON)]
        kinds = chance.sample(["MATCHED", "MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"], chance.randrange(1, 5))
        clauses = allowed([clause(chance, each) for each in kinds])
        statement = f"MERGE INTO db.t t USING given s ON {on.sql} {' '.join(each.sql for each in clauses)}"
        after = merged(model, source, on, clauses)
        if isinstance(after, str):
            refused += 1
            with pytest.raises(InvalidArgument, match="several rows of the source"):
                ice.sql(statement)
        else:
            model = after
            ice.sql(statement)
        check(f"{statement} with {source}")
        some = chance.choice(OF_TARGET[1:])
        statement = f"UPDATE db.t t SET val = t.val + 2, part = t.val WHERE {some.sql}"
        ice.sql(statement)
        model = [(t[ID], t[VAL], sum_of(t[VAL], 2), t[NAME]) if some.holds(t, None) else t for t in model]
        check(statement)
        some, digit = chance.choice(OF_TARGET[1:]), chance.randrange(10)
        statement = f"DELETE FROM db.t t WHERE {some.sql} AND pmod(length(t.name) + t.val, 10) = {digit}"
        ice.sql(statement)
        gone = [
            bool(some.holds(t, None)) and t[VAL] is not None and (len(t[NAME]) + t[VAL]) % 10 == digit for t in model
        ]
        model = [t for t, goes in zip(model, gone, strict=True) if not goes]
        check(statement)
        added = some_rows(chance, max(0, 30 - len(model)), 40, "n")
        if added:
            ice.append(ice.spark.createDataFrame(added, COLUMNS), "db.t")
            model = model + added
    assert refused < turns
