"""The examination of storage finds the real behaviour of a store, whatever it declares, and leaves no file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from icefield import LocalFileSystem, MemoryFileSystem
from icefield.abc import FileSystemAbility
from icefield.errors import FileMissing
from icefield_maintenance.doctor import Finding, Result, examine_storage
from icefield_maintenance.doctor.findings import tried
from unhealthy_stores import (
    SECRET,
    STORES,
    Behind,
    DeniesDeletes,
    DeniesWrites,
    IgnoresPreconditions,
    Modest,
    Raises,
    RenamesTwice,
    Timeless,
)

FOLDER = "memory://store/.icefield-doctor/x"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFileSystem, "files", {})


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    found = {finding.check: finding for finding in findings}
    assert len(found) == len(findings), "a check has one finding"
    return found


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.__name__)
def test_just_what_a_store_does_wrong_is_found(kind: type[MemoryFileSystem]) -> None:
    findings = examine_storage(kind({"sick.token": SECRET}), FOLDER)
    failed = {finding.check for finding in findings if finding.result is Result.FAILED}
    assert failed == STORES[kind], findings


@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.__name__)
def test_each_finding_says_what_to_do_and_shows_no_credential(kind: type[MemoryFileSystem]) -> None:
    for finding in examine_storage(kind({"sick.token": SECRET}), FOLDER):
        if finding.result in (Result.FAILED, Result.WARNING):
            assert finding.found
            assert finding.advice
        elif finding.result is Result.SKIPPED:
            assert finding.found
        assert SECRET not in repr(finding)


@pytest.mark.parametrize("kind", [kind for kind, failed in STORES.items() if "delete" not in failed])
def test_nothing_is_left_whatever_went_wrong(kind: type[MemoryFileSystem]) -> None:
    MemoryFileSystem.files["memory://store/theirs"] = (b"", 0)
    examine_storage(kind(), FOLDER)
    assert set(MemoryFileSystem.files) == {"memory://store/theirs"}


def test_an_error_in_the_middle_leaves_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        assert MemoryFileSystem.files
        raise KeyboardInterrupt

    monkeypatch.setattr(MemoryFileSystem, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        examine_storage(MemoryFileSystem(), FOLDER)
    assert MemoryFileSystem.files == {}


def test_what_cannot_be_deleted_is_named() -> None:
    found = by_check(examine_storage(DeniesDeletes(), FOLDER))
    assert found["delete"].found.startswith("denied: the store refused to delete memory://store/")
    assert found["delete"].advice == f"give the credentials in use the right to delete {FOLDER}"
    assert f"are left: {FOLDER}/" in found["clean-up"].found
    assert found["clean-up"].advice == f"delete what is in {FOLDER}"


def test_a_store_that_can_only_be_read_is_reported_by_the_operation_and_the_location() -> None:
    found = by_check(examine_storage(DeniesWrites(), FOLDER))
    assert found["write"].found.startswith(f"denied: the store refused to write {FOLDER}/")
    assert found["write"].advice == f"give the credentials in use the right to write {FOLDER}"
    assert found["list"].result is Result.OK
    assert found["read"].result is Result.SKIPPED


def test_only_what_changes_nothing_is_tried_when_that_is_asked_for() -> None:
    found = by_check(examine_storage(DeniesWrites(), FOLDER, writes=False))
    assert {check: finding.result for check, finding in found.items()} == {
        "credentials": Result.OK,
        "list": Result.OK,
    }


def test_a_promise_that_is_not_kept_comes_with_the_property_that_declares_it_and_what_is_left() -> None:
    asked = []

    def alternatives(kept: frozenset[FileSystemAbility]) -> str:
        asked.append(kept)
        return "use something else"

    found = by_check(examine_storage(IgnoresPreconditions(), FOLDER, alternatives=alternatives))
    assert "created twice under one name" in found["atomic create"].found
    assert "commits would lose updates" in found["atomic create"].found
    assert found["atomic create"].advice == "declare it by the property sick.conditional-put=false; use something else"
    # When the second broken promise is reported, neither ability is left.
    assert asked[-1] == {FileSystemAbility.LIST}
    assert "ATOMIC_RENAME" in found["atomic rename"].advice


def test_what_is_left_of_a_store_that_renames_over_files_is_its_atomic_create() -> None:
    found = by_check(examine_storage(RenamesTwice(), FOLDER))
    assert "ATOMIC_CREATE" in found["atomic rename"].advice
    assert found["atomic create"].found == "one of 8 at once won, 3 times"


def test_what_is_not_offered_is_not_tried() -> None:
    found = by_check(examine_storage(Modest(), FOLDER))
    assert found["atomic create"].result is Result.SKIPPED
    assert found["list"].result is Result.SKIPPED
    assert found["atomic rename"].result is Result.OK


def test_a_clock_that_is_a_little_off_is_a_warning_and_a_store_without_one_is_well() -> None:
    found = by_check(examine_storage(Behind(), FOLDER))["clock"]
    assert found.result is Result.WARNING
    assert found.found == "the store's clock is 20 s behind this machine's"
    assert "NTP" in found.advice
    assert by_check(examine_storage(Timeless(), FOLDER))["clock"].result is Result.OK


def test_an_error_that_breaks_the_contract_is_a_finding_and_not_the_end() -> None:
    found = by_check(examine_storage(Raises({"sick.token": SECRET}), FOLDER))
    assert found["write"].found.endswith("?sig=*** failed")
    assert "report it to the author of the plugin" in found["write"].advice


def test_a_local_disk_is_well_and_keeps_no_folder(tmp_path: Path) -> None:
    findings = examine_storage(LocalFileSystem(), f"file://{tmp_path}/here")
    assert {finding.result for finding in findings} == {Result.OK}
    assert not list(tmp_path.iterdir())


def _examined_elsewhere(folder: str, before: str) -> dict[str, str]:
    """The findings of another process, which first runs the code ``before``."""
    code = f"""
import os, resource
{before}
from icefield.builtin.local import LocalFileSystem
from icefield_maintenance.doctor import examine_storage
for finding in examine_storage(LocalFileSystem(), {folder!r}):
    print(finding.check, finding.result.value, finding.found, finding.advice, sep="|")
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100)
    return {line.split("|")[0]: line.partition("|")[2] for line in ran.stdout.splitlines()}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
def test_a_folder_that_can_only_be_read_is_denied(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own").chmod(0o555)
    for folder in (tmp_path, *tmp_path.parents):  # another user must get there
        if folder.stat().st_uid == os.getuid() and str(folder) != "/":
            folder.chmod(folder.stat().st_mode | 0o555)
    # The superuser may write everywhere, so the process becomes another user after its imports.
    load = "import icefield_maintenance.doctor, icefield.builtin.local, concurrent.futures, pyarrow\n"
    become = "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)"
    found = _examined_elsewhere(f"file://{tmp_path}/own/new", f"{load}{become}")
    assert found["write"].startswith(f"failed|denied: cannot use file://{tmp_path}/own/new/")
    assert "Permission denied" in found["write"]
    assert found["list"].startswith("ok")
    assert not list((tmp_path / "own").iterdir())


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="limits as POSIX has them")
def test_a_disk_without_space_is_reported(tmp_path: Path) -> None:
    quiet = "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
    found = _examined_elsewhere(f"file://{tmp_path}/new", quiet + limit)
    assert found["write"].startswith("ok")
    assert found["ranges"].startswith(f"failed|cannot use file://{tmp_path}/new/")
    assert "File too large" in found["ranges"]
    assert "its space" in found["ranges"]
    assert not list(tmp_path.iterdir())


def test_a_place_that_is_not_there_is_no_wrong_property() -> None:
    def missing() -> str:
        raise FileMissing("no file file:///nowhere/a", location="file:///nowhere/a")

    found = tried("write", missing, {}, "write file:///nowhere")
    assert found.advice == "see why it cannot write file:///nowhere: its address, its space, the credentials"
