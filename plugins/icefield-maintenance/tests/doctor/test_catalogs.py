"""The examination of a catalog goes from its configuration to its commits, and changes nothing that stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import icefield
import pytest
from icefield import MemoryFileSystem, Plugins
from icefield.errors import AccessDenied
from icefield_maintenance.doctor import Finding, Result, examine
from unhealthy_stores import PLUGIN, SECRET

Examine = Callable[..., dict[str, Finding]]
COMMITS = {"create a table", "commit on an old base", "commits at once", "drop the table"}
STORED = {
    "credentials",
    "list",
    "write",
    "read",
    "ranges",
    "clock",
    "list what was written",
    "replace",
    "abandoned write",
    "atomic create",
    "atomic rename",
    "delete",
}


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration of this machine reaches a test."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ICEFIELD_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MemoryFileSystem, "files", {})


def examined(name: str | None = None, **options: object) -> dict[str, Finding]:
    """The findings by check, those of plugins left out."""
    plugins = Plugins.installed(extra=[PLUGIN])
    findings = [each for each in examine(name, plugins=plugins, **options) if not each.check.startswith("plugin ")]
    return {finding.check: finding for finding in findings}


def failed(found: dict[str, Finding]) -> set[str]:
    return {check for check, finding in found.items() if finding.result is Result.FAILED}


@pytest.mark.parametrize("kind", ["directory", "rename", "sql"])
@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_a_healthy_catalog_passes_every_check_and_is_as_before(kind: str, scheme: str, tmp_path: Path) -> None:
    warehouse = f"file://{tmp_path}/warehouse" if scheme == "file" else "memory://warehouse"
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db"} if kind == "sql" else {"type": "directory"}
    if kind == "rename":
        properties["commit"] = "rename"
    with icefield.load_catalog("test", warehouse=warehouse, **properties) as catalog:
        catalog.create_namespace("db")
        before = catalog.list_namespaces(), sorted((tmp_path / "warehouse").rglob("*")), dict(MemoryFileSystem.files)
        found = examined("test", warehouse=warehouse, **properties)
        assert set(found) >= {"configuration", "catalog", "connection", "file system", *STORED, *COMMITS}
        assert {finding.result for finding in found.values()} == {Result.OK}
        assert ("create a namespace" in found) is (kind == "sql")
        after = catalog.list_namespaces(), sorted((tmp_path / "warehouse").rglob("*")), dict(MemoryFileSystem.files)
        assert after == before


def test_nothing_is_changed_when_only_reading_is_asked_for(tmp_path: Path) -> None:
    found = examined(type="directory", warehouse=f"file://{tmp_path}/warehouse", writes=False)
    assert set(found) == {"configuration", "catalog", "connection", "file system", "credentials", "list"}
    assert not (tmp_path / "warehouse").exists()


def test_another_place_than_the_warehouse_can_be_examined(tmp_path: Path) -> None:
    found = examined(type="sql", uri=f"sqlite:///{tmp_path}/c.db", location=f"file://{tmp_path}/there")
    assert failed(found) == set()
    assert found["commits at once"].result is Result.OK
    nothing = examined(type="sql", uri=f"sqlite:///{tmp_path}/c.db")
    assert nothing["storage"].result is Result.SKIPPED


def test_a_store_that_does_not_keep_what_it_says_is_named_with_what_is_safe_there(tmp_path: Path) -> None:
    found = examined(type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse="renamestwice://w")
    assert failed(found) == {"atomic rename"}
    advice = found["atomic rename"].advice
    assert "this store does not do what RenamesTwice says of it (ATOMIC_RENAME)" in advice
    assert "commit='create'" in advice
    assert "commit='rename'" not in advice
    assert "a metastore catalog (type='sql')" in advice


def test_a_strategy_whose_store_does_not_keep_its_promise_loses_updates_and_is_found() -> None:
    found = examined(type="directory", warehouse="looksfirst://w", commit="create")
    assert failed(found) == {"atomic create", "commits at once"}
    assert MemoryFileSystem.files == {}


def test_a_warehouse_that_can_only_be_read_is_reported_and_nothing_is_committed_to() -> None:
    found = examined(type="directory", warehouse="denieswrites://w")
    assert failed(found) == {"write"}
    assert found["commits"].result is Result.SKIPPED


def test_a_namespace_that_is_there_serves_where_none_may_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": "memory://w"}
    with icefield.load_catalog("test", **properties) as catalog:
        catalog.create_namespace("db")
        kind = type(catalog.backend)

    def denied(*_: object) -> None:
        raise AccessDenied("the database refused")

    monkeypatch.setattr(kind, "create_namespace", denied)
    monkeypatch.setattr(kind, "drop_namespace", denied)
    found = examined("test", **properties)
    assert failed(found) == {"create a namespace"}
    assert found["create a namespace"].advice.endswith("or name a namespace that is there (--namespace)")
    assert failed(examined("test", namespace="db", **properties)) == set()
    with icefield.load_catalog("test", **properties) as catalog:
        assert catalog.list_tables("db") == []


@pytest.mark.parametrize(
    ("properties", "check", "said"),
    [
        ({"type": "nosuch"}, "catalog", "no catalog for 'nosuch'"),
        ({"type": "directory"}, "catalog", "needs the property 'warehouse'"),
        ({"type": "directory", "warehouse": "nosuch://w"}, "catalog", "no file system for 'nosuch'"),
        ({"type": "directory", "warehouse": "modest://w", "commit": "create"}, "catalog", "would lose updates"),
        ({"type": "sql", "uri": f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/db"}, "connection", "cannot use its"),
        (
            {"type": "sql", "uri": "sqlite:////nowhere/at/all.db", "warehouse": "memory://without-a-database"},
            "connection",
            "unable to open",
        ),
    ],
)
def test_a_catalog_that_cannot_be_used_is_a_finding(properties: dict[str, str], check: str, said: str) -> None:
    found = examined("test", **properties)
    assert failed(found) == {check}
    assert said in f"{found[check].found}; {found[check].advice}"
    if check == "connection":
        assert found["storage" if "warehouse" not in properties else "commits"].result is Result.SKIPPED
    assert found[check].advice
    assert SECRET not in repr(found)


def test_a_name_that_is_not_configured_comes_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "icefield.toml").write_text("[catalog.prod]\ntype = 'directory'\nwarehouse = 'memory://w'\n")
    found = examined("prodd")
    assert found["configuration"].found == "nothing is known of catalog 'prodd'; configured are: prod"
    assert "[catalog.prodd]" in found["configuration"].advice
    assert "icefield.toml" in examined("prod")["configuration"].found


@pytest.mark.skipif(os.name != "posix", reason="rights as POSIX has them")
@pytest.mark.parametrize(
    ("key", "value"), [("s3.session-token", SECRET), ("uri", f"postgresql+psycopg://me:{SECRET}@127.0.0.1:1/db")]
)
def test_a_configuration_with_credentials_that_others_can_read_is_a_warning(
    key: str, value: str, tmp_path: Path
) -> None:
    file = tmp_path / "icefield.toml"
    file.write_text(f"[catalog.prod]\ntype = 'directory'\nwarehouse = 'memory://w'\n'{key}' = '{value}'\n")
    file.chmod(0o644)
    found = examined("prod")["configuration"]
    assert found.result is Result.WARNING
    assert f"({key})" in found.found
    assert SECRET not in repr(found)
    assert found.advice.startswith(f"chmod 600 {file}")
    file.chmod(0o600)
    assert examined("prod")["configuration"].result is Result.OK
