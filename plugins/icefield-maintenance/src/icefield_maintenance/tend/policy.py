"""Policies: the goals of the tables of a catalog, the budget for their maintenance, and rows to erase."""

from __future__ import annotations

import datetime as dt
import os
import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, Self

from icefield.errors import IcefieldError, InvalidArgument
from icefield.expressions import as_expression
from icefield.toolkit import decodable
from msgspec import Meta, Struct

from icefield_maintenance.tend.goals import Goals, converted, preset
from icefield_maintenance.tend.lease import LONGEST_LEASE_MS
from icefield_maintenance.tend.quantities import Size, Span, TableTime

_WINDOW: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000


class Window(str):
    """A part of each day in UTC, such as ``22:00-06:00``. Equal times mean the whole day."""

    @classmethod
    def parse(cls, given: Any) -> Self:
        """Check it. Raises ``ValueError``."""
        if not isinstance(given, str) or _WINDOW.fullmatch(given) is None:
            raise ValueError(f"{given!r:.40} is no window such as 22:00-06:00")
        return cls(given)

    def holds(self, now_ms: int) -> bool:
        """Whether a time, in ms since 1970 UTC, is in the window."""
        hours = [int(part) for part in re.split("[:-]", self)]
        start, end = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
        minute = now_ms % _DAY_MS // _MINUTE_MS
        return (minute - start) % 1440 < ((end - start) % 1440 or 1440)


@decodable
class TendBudget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The limits of maintenance: in the last 24 hours, at once, and by the time of day.

    ``bytes_per_day`` counts the bytes that operations rewrite or read for statistics, ``hours_per_day`` their time.
    ``concurrency`` is the number of tables at once, and ``time_per_table`` the longest time of a run on one of them.
    Without ``windows``, every time of day is allowed.
    """

    bytes_per_day: Size | None = None
    hours_per_day: Annotated[float, Meta(ge=0)] | None = None
    concurrency: Annotated[int, Meta(ge=1, le=64)] = 1
    time_per_table: TableTime = TableTime.parse("6h")
    windows: tuple[Window, ...] = ()

    def is_open(self, now_ms: int) -> bool:
        """Whether a window is open at a time in ms since 1970 UTC."""
        return not self.windows or any(window.holds(now_ms) for window in self.windows)


@decodable
class GoalRule(Goals, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The goals of the tables with names such as ``sales.*``; its own goals go before those of its preset."""

    tables: str
    preset: str | None = None

    def __post_init__(self) -> None:
        if self.preset is not None:
            preset(self.preset)

    @property
    def goals(self) -> Goals:
        """The goals, with those of the preset."""
        return self.over(Goals() if self.preset is None else preset(self.preset))


@decodable
class Erasure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Rows to erase from tables with names such as ``sales.*`` until the end of a day.

    ``name`` identifies the erasure in the record, which never holds the filter.
    """

    name: str
    tables: str
    where: str
    by: dt.date

    def __post_init__(self) -> None:
        try:
            as_expression(self.where)
        except IcefieldError:  # the message may quote the filter
            raise ValueError(f"the filter of erasure {self.name!r:.40} cannot be read") from None

    @property
    def reason(self) -> str:
        """The reason in the record: the name, and the day."""
        return f"erasure {self.name}, due on {self.by}"

    @property
    def deadline_ms(self) -> int:
        """The end of the day, in ms since 1970 UTC."""
        return int(dt.datetime.combine(self.by, dt.time.max, dt.UTC).timestamp() * 1000)


@decodable
class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The goals of the tables of a catalog, by rules; for each goal, the last rule that states it counts.

    ``record`` is the name of the table that holds the record of all operations. ``lease`` is the time after which
    another process takes over a table whose process has died.
    """

    rules: tuple[GoalRule, ...] = ()
    erasures: tuple[Erasure, ...] = ()
    budget: TendBudget = TendBudget()
    record: str | None = None
    lease: Span = Span.parse("10m")

    def __post_init__(self) -> None:
        if not _MINUTE_MS // 60 <= self.lease <= LONGEST_LEASE_MS:
            raise ValueError("the lease takes at least a second, and at most a day")
        if self.record is not None and ("." not in self.record or not all(self.record.split("."))):
            raise ValueError(f"{self.record!r:.40} is no name of a record such as ops.tend")
        if self.erasures and self.record is None:
            raise ValueError("erasures need a record, which says that they are done: give its name")
        names = [each.name for each in self.erasures]
        if len(set(names)) < len(names):
            raise ValueError("two erasures have one name")

    @classmethod
    def from_mapping(cls, given: Any) -> Self:
        """Make a policy of nested mappings, as TOML gives them. Raises ``InvalidArgument`` that names the key."""
        return cls._converted(given, "the policy")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a policy from a TOML file. Raises ``InvalidArgument``."""
        place = f"the policy {os.fspath(path) or repr('')}"
        try:
            given = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise InvalidArgument(f"{place} cannot be read: {error.strerror or error}") from error
        except ValueError as error:  # of TOML, or of UTF-8
            raise InvalidArgument(f"{place} is no TOML: {error}") from error
        return cls._converted(given, place)

    @classmethod
    def _converted(cls, given: Any, place: str) -> Self:
        found: Self = converted(given, cls, place, GoalRule, TendBudget, Erasure)
        return found

    def goals_of(self, table: tuple[str, ...]) -> Goals | None:
        """The goals of a table by its name; None if no rule names it."""
        goals = None
        for rule in self.rules:
            if _matches(table, rule.tables):
                goals = rule.goals if goals is None else rule.goals.over(goals)
        return goals

    def names(self, table: tuple[str, ...]) -> bool:
        """Whether a rule or an erasure names a table."""
        return self.goals_of(table) is not None or bool(self.erasures_of(table))

    def erasures_of(self, table: tuple[str, ...]) -> list[Erasure]:
        """The erasures that concern a table."""
        return [each for each in self.erasures if _matches(table, each.tables)]


def _matches(table: tuple[str, ...], pattern: str) -> bool:
    return fnmatchcase(".".join(table), pattern)
