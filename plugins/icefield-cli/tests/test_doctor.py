"""The doctor finds what storage really does, whatever it says of itself."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from icefield import Provider, hookimpl, plugins
from icefield.abc import FileSystemAbility, PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.plugins import PluginInfo
from icefield_cli.main import main

Run = Callable[..., Any]
NAMES = {"catalog", "write and read", "atomic create", "atomic rename", "list", "delete"}


class Replacing(MemoryFileSystem):
    """Says that it creates and renames atomically, and replaces what is there."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        super().put(location, data, PutMode.OVERWRITE)

    def rename(self, source: str, target: str) -> None:
        data, _ = self._get(source)
        self._publish(target, data, replace=True)
        self.delete_many([source])


class Looking(MemoryFileSystem):
    """Looks before it writes, which is not atomic."""

    def put(self, location: str, data: bytes, mode: PutMode) -> None:
        if mode is PutMode.CREATE and location in self._files:
            super().put(location, data, mode)  # raises
        time.sleep(0.02)
        super().put(location, data, PutMode.OVERWRITE)


class Forgetful(MemoryFileSystem):
    """Lists nothing, deletes nothing and gives back something else."""

    def list(self, prefix: str, *, shallow: bool = False) -> Any:
        return iter(())

    def delete_many(self, locations: Any) -> None:
        pass

    def open_input(self, location: str) -> Any:
        return io.BytesIO(b"else")


class Raising(MemoryFileSystem):
    """Lets an error of its own out."""

    def open_output(self, location: str) -> Any:
        raise RuntimeError("the SDK's own")


class Modest(MemoryFileSystem):
    """Renames atomically and offers nothing else."""

    abilities = frozenset({FileSystemAbility.ATOMIC_RENAME, FileSystemAbility.LIST})


class Planted:
    """A plugin with the file systems above."""

    @hookimpl
    def icefield_file_systems(self) -> list[Provider]:
        kinds = (Replacing, Looking, Forgetful, Raising, Modest)
        return [Provider((kind.__name__.lower(),), f"planted_file_systems:{kind.__name__}") for kind in kinds]


@pytest.fixture
def examine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[[str], Any]:
    """Run the doctor on a warehouse of a planted scheme; rows by check, and how it ended."""
    monkeypatch.setitem(sys.modules, "planted_file_systems", SimpleNamespace(**globals()))
    installed = plugins._entry_points()
    monkeypatch.setattr(plugins, "_entry_points", lambda: (*installed, (PluginInfo("planted"), Planted())))
    monkeypatch.setattr(MemoryFileSystem, "_files", {})

    def examined(scheme: str) -> Any:
        options = ["-p", "type=sql", "-p", f"uri=sqlite:///{tmp_path}/c.db", "-p", f"warehouse={scheme}://w"]
        status = main(["doctor", "--output", "json", *options])
        captured = capsys.readouterr()
        rows = {row["check"]: row for row in map(json.loads, captured.out.splitlines())}
        return SimpleNamespace(status=status, rows=rows, err=captured.err)

    return examined


def test_every_check_passes_on_a_local_disk_and_leaves_no_file(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        ran = run("doctor", "--output", "json")
        assert ran.status == 0
        assert {row["check"] for row in ran.objects} > NAMES
        assert {row["result"] for row in ran.objects} == {"ok"}
    left = [path.relative_to(tmp_path / "warehouse") for path in (tmp_path / "warehouse").rglob("*icefield-doctor*")]
    assert left == [Path(".icefield-doctor")]
    assert not [*(tmp_path / "warehouse" / ".icefield-doctor").iterdir()]
    assert run("namespaces").lines == ["namespace", "db"]


def test_storage_that_replaces_files_is_found(examine: Callable[[str], Any]) -> None:
    found = examine("replacing")
    assert found.status == 1
    for check in ("atomic create", "atomic rename"):
        assert found.rows[check]["result"] == "failed"
        assert "8 of 8 writers at once" in found.rows[check]["advice"]
        assert "use a metastore catalog" in found.rows[check]["advice"]
    assert found.rows["list"]["result"] == "ok"
    assert found.err == f"icefield: 2 of {len(found.rows)} checks failed: atomic create, atomic rename\n"


def test_storage_that_looks_before_it_writes_is_found(examine: Callable[[str], Any]) -> None:
    assert examine("looking").rows["atomic create"]["result"] == "failed"


def test_storage_that_forgets_is_found(examine: Callable[[str], Any]) -> None:
    found = examine("forgetful")
    failed = {check for check, row in found.rows.items() if row["result"] == "failed"}
    assert failed == {"write and read", "atomic create", "atomic rename", "list", "delete"}


def test_an_error_that_breaks_the_contract_is_a_finding_and_not_the_end(examine: Callable[[str], Any]) -> None:
    found = examine("raising")
    assert found.rows["write and read"]["advice"] == "RuntimeError: the SDK's own; tell the author of the plugin"
    assert found.rows["atomic create"]["result"] == "ok"


def test_what_storage_does_not_offer_is_not_tried(examine: Callable[[str], Any]) -> None:
    found = examine("modest")
    assert found.status == 0
    assert found.rows["atomic create"]["result"] == "skipped"
    assert found.rows["atomic rename"]["result"] == "ok"


def test_a_plugin_that_fails_to_load_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = (PluginInfo("sad", "icefield-sad", "1.0"), ImportError("no module named 'sdk'"))
    installed = plugins._entry_points()
    monkeypatch.setattr(plugins, "_entry_points", lambda: (*installed, broken))
    assert main(["doctor", "-p", "type=directory", "-p", f"warehouse={tmp_path}/w"]) == 1
    captured = capsys.readouterr()
    assert "ImportError: no module named 'sdk'; reinstall icefield-sad" in captured.out
    assert "plugin sad" in captured.err


def test_a_catalog_that_cannot_be_opened_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-p", "type=nosuch"]) == 1
    assert "no catalog for 'nosuch'" in capsys.readouterr().out


def test_a_catalog_without_a_warehouse_is_examined_as_far_as_it_goes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    main(["doctor", "-p", "type=sql", "-p", f"uri=sqlite:///{tmp_path}/c.db"])
    assert "the catalog has no property 'warehouse'" in capsys.readouterr().out
