"""Snapshots are compared with their successors by manifest lists, of which few are held."""

from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any

import numpy as np
from icefield_maintenance.expiry.succession import Succession


def snapshots(count: int) -> list[Any]:
    return [SimpleNamespace(snapshot_id=each, parent_snapshot_id=each - 1 if each else None) for each in range(count)]


def listed(count: int) -> Any:
    return SimpleNamespace(file_counts=lambda: np.array([[1] * count, [0] * count, [0] * count], np.int32))


def test_a_list_is_held_until_its_successor_is_known() -> None:
    *expired, kept = snapshots(50)
    succession = Succession(expired, [kept])
    held: list[weakref.ref[Any]] = []
    for each in (kept, *expired):
        hashes = np.arange(each.snapshot_id + 1, dtype=np.uint64)
        held.append(weakref.ref(hashes))
        succession.note(each, listed(len(hashes)), hashes)
        del hashes
        assert sum(one() is not None for one in held) <= 2
    places: Any = SimpleNamespace(hashes=lambda paths: np.array([int(each.as_py()) for each in paths], np.uint64))
    manifests: list[Any] = [SimpleNamespace(manifest_path=str(each)) for each in range(50)]
    assert succession.losing(manifests, places) == []


def test_the_manifests_of_an_abandoned_branch_are_read_in_any_order_of_the_lists() -> None:
    places: Any = SimpleNamespace(hashes=lambda paths: np.array([int(each.as_py()) for each in paths], np.uint64))
    manifests: list[Any] = [SimpleNamespace(manifest_path=str(each)) for each in range(9)]
    first, second, third = snapshots(3)
    abandoned = SimpleNamespace(snapshot_id=7, parent_snapshot_id=0)
    lists = {0: [0], 1: [0, 1], 2: [0, 1, 2], 7: [0, 7]}
    for order in (
        (third, second, first, abandoned),
        (third, abandoned, first, second),
        (abandoned, first, second, third),
    ):
        succession = Succession([first, second, abandoned], [third])
        for each in order:
            numbers = lists[each.snapshot_id]
            succession.note(each, listed(len(numbers)), np.array(numbers, np.uint64))
        assert [one.manifest_path for one in succession.losing(manifests, places)] == ["0", "7"]
