"""Policies: goals by rules and table properties, budgets, windows, and errors that name the key."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield_maintenance.properties import TEND_PRESET
from icefield_maintenance.tend import Goals, Policy
from icefield_maintenance.tend.goals import GOALS, PRESETS, goals_in
from icefield_maintenance.tend.policy import Window
from icefield_maintenance.tend.quantities import Size, Span, StatisticsAge
from tables import memory_catalog, new_table

MINUTES = st.integers(0, 1439)


def policy(*rules: dict[str, Any], **more: Any) -> Policy:
    return Policy.from_mapping({"rules": list(rules), **more})


def test_the_last_rule_that_states_a_goal_counts() -> None:
    made = policy(
        {"tables": "*", "preset": "append-only", "snapshots": 9},
        {"tables": "sales.*", "files-per-scan": 3},
        {"tables": "sales.orders", "snapshots": 2},
    )
    of_all = made.goals_of(("other", "t"))
    assert of_all is not None
    assert (of_all.files_per_scan, of_all.snapshots) == (
        PRESETS["append-only"].files_per_scan,
        9,
    )
    orders = made.goals_of(("sales", "orders"))
    assert orders is not None
    assert (orders.files_per_scan, orders.snapshots) == (3, 2)
    assert orders.snapshot_age == Span.parse("5d")


def test_a_table_without_a_rule_is_not_named() -> None:
    made = policy({"tables": "sales.*"})
    assert made.names(("sales", "a", "b"))
    assert not made.names(("other", "sales"))
    assert made.goals_of(("other", "sales")) is None


def test_table_properties_go_before_the_policy() -> None:
    given = {"tend.files-per-scan": "2", "tend.bytes-per-file": "8 MiB"}
    found, faults = goals_in(given, Goals(files_per_scan=9, snapshots=4))
    assert not faults
    assert (found.files_per_scan, found.bytes_per_file, found.snapshots) == (2, 8 << 20, 4)
    hour = StatisticsAge.parse("1h")
    found, _ = goals_in({"tend.preset": "streaming"}, Goals(files_per_scan=9, statistics_age=hour))
    assert (found.files_per_scan, found.statistics_age) == (PRESETS["streaming"].files_per_scan, hour)


def test_the_property_for_presets_and_the_policy_know_the_same() -> None:
    assert TEND_PRESET.choices == tuple(PRESETS)
    assert list(GOALS) == list(Goals.__struct_encode_fields__)


@pytest.mark.parametrize("key", [*GOALS, "preset", "enabled"])
def test_a_goal_that_cannot_be_used_is_refused_where_it_is_set(key: str) -> None:
    with pytest.raises(InvalidArgument, match=f"tend.{key}"):
        new_table(catalog=memory_catalog(), properties={f"tend.{key}": "a dozen"})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"rule": []}, "`rule`; was 'rules' meant"),
        (
            {"rules": [{"tables": "*", "files_per_scan": 2}]},
            r"`files_per_scan` - at `\$\.rules\[0\]`; was 'files-per-scan' m",
        ),
        ({"budget": {"byte-per-day": 1}}, "was 'bytes-per-day' meant"),
        ({"budget": {"sunshine": 1}}, r"`sunshine` - at `\$\.budget`$"),
        ({"rules": [{"tables": "*", "files-per-scan": 0}]}, "files-per-scan"),
        ({"rules": [{"tables": "*", "deleted-rows": 1.5}]}, "deleted-rows"),
        ({"rules": [{"files-per-scan": 1}]}, "`tables`"),
        ({"rules": [{"tables": "*", "preset": "fast"}]}, "no preset 'fast'"),
        ({"rules": [{"tables": "*", "snapshot-age": "5 days"}]}, "snapshot-age"),
        ({"rules": [{"tables": "*", "bytes-per-file": True}]}, "bytes-per-file"),
        ({"budget": {"windows": ["24:00-01:00"]}}, "windows"),
        ({"budget": {"concurrency": 0}}, "concurrency"),
        ({"lease": "0s"}, "lease"),
        ({"erasures": [{"name": "a", "tables": "*", "where": "n = 1", "by": dt.date(2026, 1, 1)}]}, "need a record"),
        ({"record": "tend"}, "'tend' is no name of a record such as ops.tend"),
        ({"record": ""}, "'' is no name of a record"),
        ({"record": "ops..tend"}, "is no name of a record"),
        ({"rules": [{"tables": "*", "snapshot-age": ["5d"]}]}, r"\['5d'\] is neither a number nor"),
        ({"budget": {"bytes-per-day": {}}}, "{} is neither a number nor"),
    ],
)
def test_a_wrong_policy_is_refused_with_its_key(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidArgument, match=expected):
        Policy.from_mapping(given)


@pytest.mark.parametrize("where", ["", "(((", "email = ann@a.example", "email == 'ann@a.example' and"])
def test_an_erasure_with_an_unreadable_filter_is_refused_before_its_day_without_its_values(where: str) -> None:
    erasure = {"name": "request 7", "tables": "*", "where": where, "by": dt.date(2026, 12, 31)}
    with pytest.raises(InvalidArgument, match="the filter of erasure 'request 7' cannot be read") as refused:
        Policy.from_mapping({"record": "ops.tend", "erasures": [erasure]})
    assert "ann@" not in str(refused.value)


def test_a_policy_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        """
        record = "ops.tend"
        lease = "5m"
        [budget]
        bytes-per-day = "1.5 GB"
        windows = ["22:00-06:00"]
        [[rules]]
        tables = "*"
        preset = "upsert-heavy"
        [[erasures]]
        name = "request 7"
        tables = "sales.*"
        where = "email = 'a@b.c'"
        by = 2026-12-31
        """
    )
    found = Policy.from_file(path)
    assert (found.record, found.lease, found.budget.bytes_per_day) == ("ops.tend", 300_000, 1_500_000_000)
    assert [each.reason for each in found.erasures_of(("sales", "t"))] == ["erasure request 7, due on 2026-12-31"]
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # as editors on Windows write it
    assert Policy.from_file(path) == found
    path.write_text("rules = [")
    with pytest.raises(InvalidArgument, match=r"policy\.toml is no TOML"):
        Policy.from_file(path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Policy.from_file(tmp_path / "none.toml")


@given(MINUTES, MINUTES, MINUTES)
def test_a_window_holds_the_minutes_from_its_start_to_its_end(start: int, end: int, minute: int) -> None:
    window = Window.parse(f"{start // 60:02}:{start % 60:02}-{end // 60:02}:{end % 60:02}")
    inside = start <= minute < end if start < end else minute >= start or minute < end
    assert window.holds(86_400_000 * 20_000 + minute * 60_000 + 59_999) == inside


def test_a_rule_takes_an_age_back_that_another_rule_states() -> None:
    made = policy({"tables": "*", "preset": "streaming"}, {"tables": "a.b", "orphan-age": "never"}).goals_of(("a", "b"))
    assert made is not None
    assert made.orphan_age == Span.parse("never") > Span.parse("5000w")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("0", 0), (7, 7), ("5", 5), ("2 kB", 2000), ("2KiB", None), ("2 kiB", 2048), ("1.5 GiB", 3 << 29), ("-1", None)],
)
def test_sizes_have_units(given: Any, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="128 MiB"):
            Size.parse(given)
    else:
        assert Size.parse(given) == expected
