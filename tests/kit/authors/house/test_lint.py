"""A command of another distribution runs like Icefield's own commands."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from authors.house import hooks
from icefield import hookimpl
from icefield_cli import Command
from icefield_cli.main import main
from planted_plugins import plant

Lint = Callable[..., int]


@pytest.fixture
def properties(tmp_path: Path) -> list[str]:
    warehouse = f"file://{tmp_path}/warehouse"
    catalog = icefield.load_catalog("test", type="directory", warehouse=warehouse)
    catalog.create_namespace("db")
    catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("userName", pa.string()), ("Bad Name", pa.string())]))
    return ["--catalog", "test", "-p", "type=directory", "-p", f"warehouse={warehouse}"]


@pytest.fixture
def lint(monkeypatch: pytest.MonkeyPatch, properties: list[str]) -> Lint:
    plant(monkeypatch, "house", hooks, "icefield-house", "1.0")
    return lambda *arguments: main(["lint", *arguments, *properties])


def refused(run: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_the_command_reads_a_table_and_prints_rows(lint: Lint, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("db.t", "--output", "json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["column"] for row in rows] == ["userName", "Bad Name"]
    assert lint("db.t", "--style", "camel", "--except", "Bad Name", "--shortest", "3") == 0
    assert capsys.readouterr().out.split() == ["column", "style", "id", "camel"]


def test_the_command_is_listed_in_the_help_with_its_options(lint: Lint, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "lint " in capsys.readouterr().out
    with pytest.raises(SystemExit):
        lint("--help")
    printed = capsys.readouterr().out
    assert "Usage: icefield lint [OPTIONS] TABLE" in printed
    assert "--style [snake|camel]" in printed
    assert "--catalog NAME" in printed


def test_an_error_of_the_command_is_one_line(lint: Lint, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("db.t", "--fail", "--style", "snake") == 1
    assert capsys.readouterr().err == "icefield: 2 of 3 names are wrong\n"


def test_wrong_usage_shows_the_usage(lint: Lint, capsys: pytest.CaptureFixture[str]) -> None:
    printed = refused(lambda: lint("db.t", "--except", "x"), capsys)
    assert "Usage: icefield lint" in printed
    assert "'--except' names x, which is no column of db.t" in printed
    assert "'many' is no number of letters" in refused(lambda: lint("db.t", "--shortest", "many"), capsys)
    assert "'--fail' goes with '--style'" in refused(lambda: lint("db.t", "--fail"), capsys)


def test_a_broken_target_names_its_plugin(
    monkeypatch: pytest.MonkeyPatch, lint: Lint, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "authors.house.lint_command", None)
    assert lint("db.t") == 1
    assert "plugin 'house' (icefield-house 1.0) provides command 'lint'" in capsys.readouterr().err


def test_a_command_of_two_plugins_names_both(
    monkeypatch: pytest.MonkeyPatch, lint: Lint, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "again", again(), "other-lint", "2.0")
    assert lint("db.t") == 1
    assert "'house' (icefield-house 1.0) and by 'again' (other-lint 2.0)" in capsys.readouterr().err


def test_a_preference_before_the_command_chooses_the_plugin(
    monkeypatch: pytest.MonkeyPatch, properties: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch, "house", hooks, "icefield-house", "1.0")
    plant(monkeypatch, "again", again(), "other-lint", "2.0")
    assert main(["--property", "plugins.prefer.commands.lint=other-lint", *properties, "lint"]) == 1
    assert "plugin 'again' (other-lint 2.0) provides command 'lint'" in capsys.readouterr().err


def test_one_call_of_a_command_gathers_the_commands_once(monkeypatch: pytest.MonkeyPatch, lint: Lint) -> None:
    plugin, calls = again(), list[str]()

    @hookimpl(optionalhook=True)
    def icefield_commands() -> list[Command]:
        calls.append("icefield_commands")
        return []

    plugin.icefield_commands = icefield_commands  # type: ignore[attr-defined]
    plant(monkeypatch, "again", plugin)
    lint("db.t")
    assert len(calls) == 1


def again() -> types.ModuleType:
    @hookimpl(optionalhook=True)
    def icefield_commands() -> list[Command]:
        return [Command("lint", "Again.", "again:run")]

    module = types.ModuleType("again")
    module.icefield_commands = icefield_commands  # type: ignore[attr-defined]
    return module


def test_a_process_that_lists_plugins_imports_no_library_of_the_command_line() -> None:
    program = (
        "import sys; from icefield import Plugins; from icefield_cli import Command; "
        "records = Plugins.installed().records('icefield_commands', Command); "
        "assert len(records) >= 34, len(records); "
        "print([name for name in ('click', 'rich', 'matplotlib', 'starlette', 'icefield_maintenance.doctor') "
        "if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": "Lint"}, "lower case"),
        ({"target": "lint"}, "'module:attribute'"),
        ({"parameters": lambda option: (option("x", "", "colour"),)}, "unknown kind 'colour'"),
        ({"parameters": lambda option: (option("x", "", spellings=("--catalog",)),)}, "option '--catalog'"),
        ({"parameters": lambda option: (option("x", ""), option("x", ""))}, "parameter 'x'"),
        ({"needs": ("absent",)}, "no parameter 'absent'"),
    ],
    ids=lambda each: str(each)[:20],
)
def test_a_malformed_record_is_refused_where_it_is_made(options: dict[str, Any], reason: str) -> None:
    from icefield.errors import InvalidArgument
    from icefield_cli import Option

    given = {"name": "lint", "help": "", "target": "lint:run", **options}
    if callable(given.get("parameters")):
        given["parameters"] = given["parameters"](Option)
    with pytest.raises(InvalidArgument, match=reason):
        Command(**given)
