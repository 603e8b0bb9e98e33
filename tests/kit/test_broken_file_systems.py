"""The kit rejects file systems that are broken on purpose: a check that accepts them would be worthless."""

from __future__ import annotations

from pathlib import Path

import pytest
from icefield.abc import FileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield_testing import FileSystemSuite
from kit_checks import checks, failures, rejection, words
from mutants import Mutant
from mutants.file_systems import MUTANTS
from mutants.file_systems.failing import Remote
from mutants.file_systems.places import Bound
from mutants.file_systems.suites import OnDisk, given, suite_of
from mutants.file_systems.uploads import SentUploads, Uploads
from mutants.file_systems.writing import OpensExclusively

HANG = {"WaitsForItself": 1.0, "ForkUnsafe": 4.0, "StreamsHangAfterAFork": 4.0, "ReadsHangAfterAFork": 4.0}
"""By mutants that hang, how long a check may take."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_broken_file_system_is_rejected_with_a_note_that_names_the_cause(mutant: Mutant, tmp_path: Path) -> None:
    fail_fast = type("Suite", (suite_of(mutant.plugin),), {"check_seconds": HANG.get(str(mutant), 60.0)})
    said = words(lambda: rejection(fail_fast, mutant.check, given(mutant.plugin, tmp_path)), mutant.cause)
    assert mutant.cause in said, said


@pytest.mark.slow
def test_a_file_that_is_written_in_place_is_found_each_time_and_in_two_ways(tmp_path: Path) -> None:
    ways = ("test_nobody_sees_a_step_of_a_creation", "test_a_process_that_dies_while_it_writes_leaves_no_part")
    said = [rejection(OnDisk, way, given(OpensExclusively, tmp_path / f"{n}")) for n in range(50) for way in ways]
    assert [bool(each) for each in said] == [True] * 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LocalFileSystem, MemoryFileSystem, Remote, Bound, Uploads, SentUploads])
def test_a_right_file_system_passes_every_check(kind: type[FileSystem], tmp_path: Path) -> None:
    assert failures(suite_of(kind), given(kind, tmp_path)) == []


def test_there_is_a_broken_file_system_for_every_check() -> None:
    about_the_plugin = {"test_the_plugin_states_its_contract_number"}  # test_contract_numbers.py
    assert {name for name, _ in checks(FileSystemSuite)} - about_the_plugin == {mutant.check for mutant in MUTANTS}
