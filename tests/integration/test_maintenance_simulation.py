"""Expiry and orphan removal in a simulated world, beside writers that stall, by clocks that are wrong."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable

import icefield_maintenance.expiry.unreachable
import icefield_maintenance.orphans.clock
import pytest
from icefield.builtin.strategies import CreateStrategy, RenameStrategy
from icefield_maintenance.orphans.belonging import ReferencedFiles
from simulation.course import LOCATION, Build, Wrong
from simulation.maintenance import MaintenanceCourse
from simulation.stores import SimulatedMetastore
from simulation.world import Odds, World

NAME = ("db", "t")
COURSES = 1_000 if os.environ.get("ICEFIELD_SOAK") else 20
PLANTED_WITHIN = 200
BUILDS: dict[str, Build] = {
    "create": lambda system: CreateStrategy(NAME, LOCATION, system),
    "rename": lambda system: RenameStrategy(NAME, LOCATION, system),
    "metastore": lambda system: SimulatedMetastore(system, LOCATION),
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Hide the log of files that could not be deleted, which are expected here."""
    caplog.set_level(logging.CRITICAL, "icefield")


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("REF-09", "SNAP-18")
@pytest.mark.parametrize(("name", "on_objects"), [*((name, False) for name in BUILDS), ("create", True)])
def test_no_course_of_events_deletes_a_live_file(name: str, on_objects: bool) -> None:
    counts: dict[str, int] = {}
    for seed in range(COURSES):
        course = MaintenanceCourse(BUILDS[name], seed, on_objects=on_objects)
        course.run()
        for what, number in {**course.counts, "excused": course.excused}.items():
            counts[what] = counts.get(what, 0) + number
    assert counts["committed"] > COURSES
    assert counts["orphans"], "no orphan was removed"
    assert counts["expired"], "no snapshot expired"
    assert counts["excused"] < COURSES / 20


def trusts_its_own_clock(patch: pytest.MonkeyPatch) -> None:
    clock = icefield_maintenance.orphans.clock
    patch.setattr(clock, "store_now_ms", lambda io, folder: clock.local_now_ms())


def loads_before_it_lists(patch: pytest.MonkeyPatch) -> None:
    """Make orphan removal load the table before it lists files, so that it misses later commits."""
    add, seen = ReferencedFiles.add, set[int]()

    def first_only(self: ReferencedFiles, *given: object) -> None:
        if id(self) not in seen:
            seen.add(id(self))
            add(self, *given)  # type: ignore[arg-type]

    patch.setattr(ReferencedFiles, "add", first_only)


def looks_at_no_kept_manifest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(icefield_maintenance.expiry.unreachable, "_protect_live_files", lambda *_: None)


PLANTED: tuple[Callable[[pytest.MonkeyPatch], None], ...] = (
    trusts_its_own_clock,
    loads_before_it_lists,
    looks_at_no_kept_manifest,
)


@pytest.mark.slow
@pytest.mark.parametrize("on_objects", [False, True])
@pytest.mark.parametrize("plant", PLANTED)
def test_a_planted_fault_of_maintenance_is_found(plant: Callable[[pytest.MonkeyPatch], None], on_objects: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        for seed in range(PLANTED_WITHIN):
            try:
                MaintenanceCourse(BUILDS["create"], seed, on_objects=on_objects).run()
            except Wrong:
                return
    pytest.fail("the simulator did not find it")


@pytest.mark.parametrize("seed", range(8))
def test_a_course_is_not_collected_within_and_leaves_no_process_suspended(seed: int) -> None:
    world, begun, ended = World(seed, Odds()), [0], [0]

    def waits() -> None:
        begun.append(1)
        assert not gc.isenabled()
        try:
            while True:
                world.pause(1)
        finally:
            ended.append(1)

    def fails() -> None:
        world.pause(0.05)
        raise Wrong("found")

    for number in range(4):
        world.start(f"waiter {number}", waits)
    world.start("finder", fails)
    with pytest.raises(Wrong, match="found"):
        world.run()
    assert ended == begun
    assert gc.isenabled()
