"""How the command is configured, how it ends, and what never reaches a terminal."""

from __future__ import annotations

import json as json_library
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield_cli import output
from icefield_cli.command_line import provided_commands
from icefield_cli.context import Context
from icefield_cli.main import main
from icefield_cli.rows import rows_of

Run = Callable[..., Any]
ESCAPE = "\x1b[31mred\x9b31m\u202e"


# -- configuration ------------------------------------------------------------------------------------------------


@pytest.fixture
def configured(properties: dict[str, str], catalog: icefield.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog ``test`` in the environment."""
    for key, value in properties.items():
        monkeypatch.setenv(f"ICEFIELD_CATALOG__TEST__{key.upper().replace('.', '__').replace('-', '_')}", value)


@pytest.mark.usefixtures("configured")
def test_a_catalog_is_configured_by_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["namespaces", "--catalog", "test"]) == 0
    assert capsys.readouterr().out == "namespace\ndb\n"


@pytest.mark.usefixtures("configured")
def test_the_shared_options_may_stand_before_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--catalog", "test", "--output", "json", "namespaces"]) == 0
    assert capsys.readouterr().out == '{"namespace": "db"}\n'
    monkeypatch.setenv("ICEFIELD_DEFAULT_CATALOG", "test")
    assert main(["-p", "type=nosuch", "namespaces", "-p", "a=b"]) == 1
    assert "no catalog for 'nosuch'" in capsys.readouterr().err
    assert main(["namespaces"]) == 0


def test_a_catalog_is_configured_by_a_file(
    properties: dict[str, str], catalog: icefield.Catalog, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f'"{key}" = "{value}"' for key, value in properties.items()]
    (tmp_path / "icefield.toml").write_text("\n".join(['default-catalog = "test"', "[catalog.test]", *lines]))
    assert main(["namespaces"]) == 0
    assert capsys.readouterr().out == "namespace\ndb\n"


def test_without_a_catalog_the_error_tells_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["namespaces"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "configure it in icefield.toml" in captured.err


# -- endings ------------------------------------------------------------------------------------------------------


def test_an_error_is_one_line_and_status_1(run: Run) -> None:
    ended = run("describe", "db.no")
    assert (ended.status, ended.out, ended.err) == (1, "", "icefield: no table db.no in catalog 'test'\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "nonamespace"),
        ("tables", "nosuch"),
        ("drop-table", "db.no", "--purge"),
        ("rename-table", "db.no", "db.other"),
        ("register", "db.new", "file:///nosuch.metadata.json"),
        ("scan", "db.events", "--where", "id = "),
        ("scan", "db.events", "--where", "nosuch = 1"),
        *((command, "db.events", "--where", "") for command in ("scan", "files", "partitions", "changes")),
        ("tables", ""),
        ("scan", "db.events", "--columns", "nosuch"),
        ("scan", "db.events", "--snapshot", "1"),
        ("files", "db.events", "--ref", "nosuch"),
        ("files", "db.events", "--as-of", "1999-01-01"),
        ("create-namespace", "db"),
        ("create-table", "nosuch.t", "--column", "id long"),
        ("create-table", "db.t", "--column", "id long", "--partition", "day(id)"),
        ("properties", "db.events", "--set", "format-version=1"),
        ("scan", "/nosuch/v1.metadata.json"),
    ],
    ids=" ".join,
)
def test_whatever_cannot_be_done_is_one_line_and_status_1(
    run: Run, events: icefield.Table, arguments: tuple[str, ...]
) -> None:
    ended = run(*arguments)
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("icefield: ")
    assert ended.err.count("\n") == 1
    assert "unexpected" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["tabels"], "'tables'"),
        (["scan", "db.t", "--limt", "1"], "--limit"),
        (["rewrite-files"], "'rewrite-data-files'"),
    ],
    ids=str,
)
def test_what_is_spelt_wrong_is_answered_with_the_nearest(
    arguments: list[str], nearest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    said = capsys.readouterr().err.splitlines()[-1].lower()
    assert "did you mean" in said
    assert nearest in said


@pytest.mark.parametrize(
    ("words", "found"),
    [("icefield rewrite-da", "plain,rewrite-data-files\n"), ("icefield scan --as", "plain,--as-of\n")],
)
def test_a_shell_completes_commands_and_options(words: str, found: str) -> None:
    asked = {"_ICEFIELD_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "icefield_cli.main"]
    ran = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, found, "")


def test_a_bug_is_one_line_too_and_tells_how_to_see_more(
    run: Run, events: icefield.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise KeyError(f"\n{ESCAPE}")

    monkeypatch.setattr(icefield.Catalog, "load_table", broken)
    ended = run("describe", "db.events")
    assert ended.status == 1
    assert ended.err.count("\n") == 1
    assert ended.err.isascii()
    assert "ICEFIELD_DEBUG=1" in ended.err
    monkeypatch.setenv("ICEFIELD_DEBUG", "1")
    assert "Traceback" in run("describe", "db.events").err


def test_an_interrupt_ends_with_the_shells_status_for_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(icefield.Catalog, "load_table", interrupted)
    ended = run("describe", "db.events")
    assert (ended.status, ended.err) == (130, "icefield: interrupted\n")


def test_every_command_tells_what_it_does_and_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    assert len(provided_commands()) >= 34
    for command in provided_commands():
        assert f"\n  {command} " in listed
        with pytest.raises(SystemExit):
            main([command, "--help"])
        text = capsys.readouterr().out
        assert "--catalog NAME" in text
        assert "--output [text|json|jsonl|csv|parquet]" in text
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"icefield {icefield.__version__}\n"


@pytest.mark.parametrize(("argument", "most"), [("--version", 200), ("--help", 510)])
def test_help_and_version_import_no_command(argument: str, most: int) -> None:
    """The help listed every command by importing its module, 1,218 modules in all."""
    program = (
        "import sys\nfrom icefield_cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    print(len(sys.modules), *sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", program, argument], text=True)
    number, *modules = printed.splitlines()[-1].split()
    targets = {record.target.partition(":")[0] for found in provided_commands().values() for _, record in found}
    assert targets.isdisjoint(modules)
    assert int(number) < most


def test_click_is_imported_where_commands_are_rendered_and_nowhere_else() -> None:
    root = Path(__file__).parents[3]
    sources = [
        path
        for path in root.glob("plugins/*/src/**/*.py")
        if re.search(r"^\s*(from|import) click\b", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert sorted(path.name for path in sources) == ["command_line.py", "completions.py", "rendering.py"]


# -- what a terminal sees -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "command",
    ["describe", "schema", "properties", "scan", "snapshots", "metadata", "files", "manifests", "partitions", "refs"],
)
def test_no_control_character_of_a_table_reaches_the_terminal(
    run: Run, loud: icefield.Table, command: str, form: str
) -> None:
    ran = run(command, "db.loud", "--output", form)
    assert ran.status == 0
    assert ran.out.replace("\n", "").isprintable()
    if command in ("describe", "schema", "properties", "scan", "metadata"):
        shown = ("\\x1b[31mred\\x9b31m\\u202e", "\\u001b[31mred\\u009b31m\\u202e")
        assert any(text in ran.out for text in shown)


def test_json_means_what_the_table_holds(run: Run, loud: icefield.Table) -> None:
    assert run("scan", "db.loud", "--output", "json").objects == [{ESCAPE: ESCAPE}, {ESCAPE: None}]
    assert run("describe", "db.loud", "--output", "json").object["properties"] == {ESCAPE: ESCAPE}


def test_no_control_character_of_an_error_or_of_an_argument_reaches_the_terminal(
    run: Run, loud: icefield.Table
) -> None:
    refused = run("scan", "db.loud", "--columns", "nosuch")
    assert refused.status == 1
    assert refused.err.strip().isprintable()
    assert run("describe", f"db.{ESCAPE}").err.strip().isprintable()


@pytest.mark.parametrize("value", ["\ud800", "\x7f", "\x00", "\u2028", "\u200f", "\U000e0001", "a\tb", "\r"])
def test_what_does_not_print_is_spelt_out(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    output.print_rows([{value: value}], [value], json=False)
    output.print_record({value: {value: value}, "l": [value]}, json=False)
    output.print_rows([{value: value}], [], json=True)
    printed = capsys.readouterr().out
    assert printed.replace("\n", "").isprintable()
    assert json_library.loads(printed.splitlines()[-1]) == {value: value}


@pytest.mark.parametrize(("json", "terminal"), [(False, True), (False, False), (True, True)])
def test_a_long_value_is_cut_on_a_terminal_only(
    json: bool, terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    output.print_rows([{"a": "x" * 200, "snapshot_id": 2**62}], ["a", "snapshot_id"], json=json, terminal=terminal)
    printed = capsys.readouterr().out
    assert ("x" * 200 in printed) is not (terminal and not json)
    assert str(2**62) in printed
    assert max(map(len, printed.splitlines())) <= 80 or "x" * 200 in printed


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_narrow_terminal_cuts_locations_in_front_and_folds_headings(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    place = "s3://bucket/" + "folder/" * 10
    rows = [{"snapshot_id": 2**62 + i, "path": f"{place}{i}.parquet", "min_rows_per_file": i} for i in range(3)]
    output.print_rows(rows, ["snapshot_id", "path", "min_rows_per_file"], json=False, terminal=True)
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= width
    for i, line in enumerate(printed[-3:]):
        assert line.startswith(str(2**62 + i))
        assert f"/{i}.parquet" in line
        assert (place in line) is (width == 200)
    parts = [line[-17:] if width == 200 else line.split()[-1] for line in printed[:-3]]
    assert "".join(parts).strip() == "min_rows_per_file"


@pytest.mark.parametrize(("width", "shown"), [(40, 2), (80, 6), (200, 17), (400, 33)])
def test_of_a_wide_table_the_first_and_last_columns_are_shown_and_those_left_out_are_counted(
    width: int, shown: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns = [*(f"column_{i:02}" for i in range(32)), "_commit_snapshot_id"]
    row = {**dict.fromkeys(columns, "value" * 10), "_commit_snapshot_id": 2**62}
    output.print_rows([row], columns, json=False, terminal=True)
    printed = capsys.readouterr()
    heading, line = (each.split() for each in printed.out.splitlines())
    assert max(map(len, printed.out.splitlines())) <= width
    assert (heading[-1], line[-1]) == ("_commit_snapshot_id", str(2**62))
    seen = [name for name in heading if name in columns]
    assert seen == [name for name in columns if name in seen]
    assert len(seen) == shown
    assert (f"{33 - shown} of 33 columns" in printed.err) is (shown < 33)


def test_partitions_and_names_are_whole_where_only_paths_need_be_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    row = {"path": "s3://bucket/" + "x" * 90, "rows": 100, "name": "n" * 20, "partition": "time_hour_month=2013-01"}
    output.print_rows([row], list(row), json=False, terminal=True)
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split()[1:] == ["100", "n" * 20, "time_hour_month=2013-01"]


@pytest.mark.parametrize("width", [80, 200])
def test_partitions_take_a_line_a_field_where_they_do_not_fit(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    fields = ["time_hour_month=2013-01", "carrier_name=United Airlines"]
    row = {"path": "s3://bucket/" + "x" * 60, "partition": ", ".join(fields), "updated": "2026-11-25T18:42:37Z"}
    output.print_rows([row], list(row), json=False, terminal=True)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed.replace("…x", "")
    assert all(field in printed for field in fields)
    assert (", ".join(fields) in printed) is (width == 200)


def test_of_a_partition_that_does_not_fit_the_end_is_shown_by_which_it_differs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    numbers = dict.fromkeys(("rows", "files", "bytes"), 10**9)
    months = [f"time_hour_month=2013-{month:02}" for month in range(1, 13)]
    output.print_rows(
        [{"partition": month, **numbers} for month in months], ["partition", *numbers], json=False, terminal=True
    )
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert all(month.endswith(cell.removeprefix("…")) for month, cell in zip(months, shown, strict=True))
    assert len(set(shown)) == 12


def test_headings_end_their_lines_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    row = {"name": "n" * 20, "type": "branch", "snapshot_id": 2**62, "max_ref_age": "-", "min_snapshots": "-"}
    row["max_snapshot_age"] = "-"
    output.print_rows([row], list(row), json=False, terminal=True)
    words = {word for line in capsys.readouterr().out.splitlines()[:-1] for word in line.split()}
    assert words == {"name", "type", "snapshot_id", "min_", "max_", "snapshots", "snapshot_", "max_ref_", "age"}


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_of_text_end_between_words_on_a_terminal(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ids = [str(2**62 + each) for each in range(5)]
    text = f"  snapshot ids  {', '.join(ids)} in s3://bucket/{'folder/' * 20}x-y.parquet"
    output.print_line(text, 16, terminal=True)
    printed = capsys.readouterr().out.splitlines()
    assert " ".join(" ".join(printed).split()) == " ".join(text.split())
    assert all(len(line) <= width or "s3://" in line for line in printed)
    assert all(line.startswith(" " * 16) for line in printed[1:])
    output.print_line(text, 16, terminal=False)
    assert capsys.readouterr().out == text + "\n"


def test_nothing_that_a_table_holds_is_markup_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    value = "[red]:smile: [link=http://x]a[/link] [/]"
    output.print_rows([{value: value}], [value], json=False, terminal=True)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [value, value]


def test_wide_characters_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_rows([{"a": "日本", "b": 1}, {"a": "e\u0301", "b": 2}], ["a", "b"], json=False)
    assert capsys.readouterr().out.splitlines() == ["a     b", "日本  1", "e\u0301     2"]


@pytest.mark.parametrize(("json", "terminal"), [(True, False), (False, False), (False, True)])
def test_rows_are_printed_as_they_come(json: bool, terminal: bool, capsys: pytest.CaptureFixture[str]) -> None:
    printed_at: dict[int, int] = {}
    seen = 0

    def rows() -> Iterator[dict[str, int]]:
        nonlocal seen
        for number in range(5_000):
            seen += capsys.readouterr().out.count("\n") if number % 1_000 == 0 else 0
            printed_at[number] = seen
            yield {"n": number}

    output.print_rows(rows(), ["n"], json=json, terminal=terminal)
    assert printed_at[3_000] >= 2_999


def test_a_large_table_is_never_held_whole(
    run: Run, catalog: icefield.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.large", pa.schema([("id", pa.int64())]))
    for start in range(3):
        table.append(pa.table({"id": range(start * 10, start * 10 + 10)}))
    alive: list[int] = []

    def watched(batches: Any, schema: Any) -> Iterator[dict[str, Any]]:
        held = 0
        for row in rows_of(batches, schema):
            held = 1
            yield row
            alive.append(held)

    monkeypatch.setattr("icefield_cli.rows.rows_of", watched)
    monkeypatch.setattr("icefield.scan.TableScan.to_arrow", None)
    assert len(run("scan", "db.large", "--all", "--output", "json").lines) == 30
    assert len(alive) == 30


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_the_command_quietly(
    catalog: icefield.Catalog, properties: dict[str, str]
) -> None:
    table = catalog.create_table("db.many", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(100_000)}))
    options = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]
    command = [sys.executable, "-m", "icefield_cli.main", "scan", "db.many", "--all", "--output", "json"]
    command += ["--catalog", "test", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b'{"id": 0}\n'
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.slow
def test_an_output_that_is_not_utf8_fails_nothing(catalog: icefield.Catalog, properties: dict[str, str]) -> None:
    table = catalog.create_table("db.words", pa.schema([("w", pa.string())]))
    table.append(pa.table({"w": ["größer 日本"]}))
    options = [part for key, value in properties.items() for part in ("-p", f"{key}={value}")]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for form in ("text", "json"):
        command = [sys.executable, "-m", "icefield_cli.main", "scan", "db.words", "--output", form]
        command += ["--catalog", "test", *options]
        ran = subprocess.run(command, env=environment, capture_output=True, check=True)
        assert ran.stdout.isascii()
        assert form == "text" or json_library.loads(ran.stdout) == {"w": "größer 日本"}


# -- progress -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminals", "prints", "shown"),
    [("", False, False), ("err", False, True), ("err", True, True), ("out err", True, False), ("out err", False, True)],
)
def test_progress_goes_to_a_terminal_only_and_not_between_rows(
    monkeypatch: pytest.MonkeyPatch, terminals: str, prints: bool, shown: bool
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name in ("out", "err"):
        monkeypatch.setattr(getattr(sys, f"std{name}"), "isatty", lambda name=name: name in terminals.split())
    assert Context().progress("rows", prints=prints).shown is shown
