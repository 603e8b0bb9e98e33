"""Progress: which calls tell it, where it is shown, and how it is turned off."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import icefield
import nbformat
import pyarrow as pa
import pytest
from icefield import Table
from icefield.abc import OperationProgress
from icefield_progress import ProgressBar, bars, listener, places
from nbclient import NotebookClient

ROWS = pa.table({"id": range(300_000)})
JOB = """
import icefield, pyarrow as pa, time
from icefield_progress import bars
catalog = icefield.load_catalog("lake", type="directory", warehouse="memory://lake")
catalog.create_namespace("db")
rows = pa.table({"id": range(1_000)})
table = catalog.create_table("db.t", rows.schema)
def slow():
    for batch in rows.to_batches(max_chunksize=100):
        time.sleep(0.25)
        yield batch
"""


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = icefield.load_catalog("lake", type="directory", warehouse=tmp_path.as_uri())
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", ROWS.schema)
    made.append(ROWS)
    return made


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    listener._LISTENER.forget()
    yield
    assert bars.current_bar() is None


def told(call: Any) -> list[OperationProgress]:
    """The progress that a call tells."""
    heard: list[Any] = []
    with icefield.progress(heard.append):
        call()
    return [each for each in heard if isinstance(each, OperationProgress)]


def ends(events: list[OperationProgress]) -> tuple[Any, ...]:
    """The operation, the step and the numbers of the last event."""
    last = events[-1]
    return last.table, last.operation, last.step, last.done, last.total


# -- the calls that tell it ---------------------------------------------------------------------------------------


def test_an_append_tells_how_many_rows_it_has_written(table: Table) -> None:
    events = told(lambda: table.append(ROWS))
    assert ends(events) == (("db", "t"), "write", "rows", 300_000, 300_000)
    assert (events[0].done, events[0].total) == (0, 300_000)
    assert [each.done for each in events] == sorted(each.done for each in events)


def test_a_stream_of_unknown_length_tells_its_length_at_the_end(table: Table) -> None:
    events = told(lambda: table.append(ROWS.to_reader(max_chunksize=100_000)))
    assert [each.total for each in events] == [None] * (len(events) - 1) + [300_000]


@pytest.mark.parametrize("method", ["to_arrow", "to_pandas", "to_polars"])
def test_a_scan_tells_how_many_rows_it_has_read(table: Table, method: str) -> None:
    assert ends(told(getattr(table.scan(), method))) == (("db", "t"), "scan", "rows", 300_000, 300_000)


def test_a_scan_with_a_filter_does_not_guess_its_rows(table: Table) -> None:
    events = told(table.scan("id < 10").to_arrow)
    assert events[0].total is None
    assert ends(events)[-2:] == (10, 10)


def test_a_scan_of_changes_tells_how_many_it_has_read(table: Table) -> None:
    table.delete("id = 5")
    events = told(table.incremental_changelog_scan().to_arrow)
    assert ends(events) == (("db", "t"), "scan", "rows", 300_001, 300_001)
    assert events[0].total is None


def test_a_scan_that_is_left_early_still_ends(table: Table) -> None:
    def call() -> None:
        reader = table.scan().to_arrow_batch_reader()
        next(reader)
        del reader

    last = told(call)[-1]
    assert last.done == last.total < 300_000


def test_changed_rows_tell_how_many_files_are_done(table: Table) -> None:
    assert ends(told(lambda: table.delete("id = 5"))) == (("db", "t"), "rewrite-rows", "files", 1, 1)


def test_added_files_are_counted(table: Table, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    paths = [tmp_path / "other" / f"{number}.parquet" for number in range(3)]
    paths[0].parent.mkdir()
    for path in paths:
        pq.write_table(ROWS.slice(0, 10), path)
    assert ends(told(lambda: table.add_files(paths))) == (("db", "t"), "add-files", "files", 3, 3)


def test_maintenance_tells_its_steps(table: Table) -> None:
    table.append(ROWS)
    found = {each.operation for each in told(lambda: table.maintenance.rewrite_data_files(rewrite_all=True))}
    assert "rewrite-data-files" in found
    found = {each.operation for each in told(lambda: table.maintenance.remove_orphan_files(dry_run=True))}
    assert found == {"remove-orphan-files"}


def test_an_error_of_the_function_is_logged_and_the_call_goes_on(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Any) -> None:
        raise ValueError("planted")

    with icefield.progress(fail):
        table.append(ROWS)
    assert table.scan().count() == 600_000
    assert "planted" in caplog.text


# -- where it is shown --------------------------------------------------------------------------------------------


class Shown:
    """The bars that a call opens."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.titles: list[str] = []
        whole = ProgressBar.__init__

        def note(bar: ProgressBar, what: str, **options: Any) -> None:
            self.titles.append(what)
            whole(bar, what, **options)

        monkeypatch.setattr(ProgressBar, "__init__", note)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    return Shown(monkeypatch)


def test_no_bar_is_shown_in_a_pipe_nor_in_ci(table: Table, shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    table.append(ROWS)
    assert shown.titles == []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    table.append(ROWS)
    assert shown.titles == ["write db.t"]
    monkeypatch.setenv("CI", "true")
    table.append(ROWS)
    assert shown.titles == ["write db.t"]


def test_a_block_or_a_property_shows_and_hides_bars(table: Table, shown: Shown, tmp_path: Path) -> None:
    with icefield.progress():
        table.append(ROWS)
        with icefield.progress(False):
            table.append(ROWS)
    assert shown.titles == ["write db.t"]
    properties = {"type": "directory", "warehouse": tmp_path.as_uri(), "events.progress.show": "true"}
    other = icefield.load_catalog("lake", **properties).load_table("db.t")
    other.scan().to_arrow()
    with icefield.progress(False):
        other.scan().to_arrow()
    assert shown.titles == ["write db.t", "scan db.t"]


def test_a_hidden_call_does_not_move_the_bar_of_another_thread(
    table: Table, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(ROWS)
    moved: list[str] = []
    monkeypatch.setattr(ProgressBar, "reach", lambda bar, *state: moved.append(threading.current_thread().name))

    def hidden() -> None:
        for asked in (False, lambda event: None):
            with icefield.progress(asked):
                table.scan().to_arrow()

    with icefield.progress(), table.scan().to_arrow_batch_reader() as reader:
        reader.read_next_batch()
        other = threading.Thread(target=hidden, name="hidden")
        other.start()
        other.join()
    assert moved
    assert "hidden" not in moved


def test_a_call_in_another_thread_waits_for_a_bar_of_its_own(
    table: Table, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(ROWS)
    moved: list[tuple[str, int]] = []
    monkeypatch.setattr(
        ProgressBar, "reach", lambda bar, *state: moved.append((threading.current_thread().name, bar.thread))
    )

    def other() -> None:
        with icefield.progress():
            table.scan("id < 10").to_arrow()

    def run(name: str) -> None:
        thread = threading.Thread(target=other, name=name)
        thread.start()
        thread.join()

    with icefield.progress(), table.scan().to_arrow_batch_reader() as reader:
        reader.read_next_batch()
        run("while a bar is open")
        reader.read_all()
        run("afterwards")
    threads = dict(moved)
    assert "while a bar is open" not in threads
    assert threads["afterwards"] not in (threading.get_ident(), threads["MainThread"])


def test_a_command_shows_the_progress_of_all_threads(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    monkeypatch.setattr(ProgressBar, "reach", lambda bar, *state: moved.append(threading.current_thread().name))
    with ProgressBar("query", shown=True):
        thread = threading.Thread(target=lambda: table.scan().to_arrow(), name="other")
        thread.start()
        thread.join()
    assert "other" in moved


def test_an_operation_has_one_bar_that_ends_with_it(table: Table, shown: Shown) -> None:
    table.append(ROWS)
    with icefield.progress():
        table.maintenance.rewrite_data_files(rewrite_all=True)
        assert bars.current_bar() is None
        table.maintenance.erase("id = 3")
    assert shown.titles == ["rewrite-data-files db.t", "erase db.t"]


def test_the_bar_of_a_failed_call_ends(table: Table, shown: Shown) -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise ZeroDivisionError

    with icefield.progress():
        with pytest.raises(ZeroDivisionError):
            table.append(rows())
        with pytest.raises(icefield.IcefieldError):
            table.append({"other": [1]})
        assert bars.current_bar() is None
    assert shown.titles == ["write db.t"] * 2


def test_short_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("rows", shown=True) as bar:
        bar.reach("rows", 1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_shows_a_line_and_wipes_it_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, has_rich: bool
) -> None:
    if not has_rich:
        monkeypatch.setattr(bars, "find_spec", lambda name: None)
    with ProgressBar("write db.t\x1b[2J", shown=True, first_seconds=0.01) as bar:
        bar.reach("rows", 1_234, 2_000)
        time.sleep(0.4)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "1,234 of 2,000 0:00:00" in captured.err
    assert "\x1b[2J" not in captured.err
    assert captured.err.endswith("\x1b[2K")


def test_a_bar_that_hears_nothing_is_hidden_until_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("scan db.t", shown=True, first_seconds=0.01, idle_seconds=0.2) as bar:
        time.sleep(0.6)
        capsys.readouterr()
        time.sleep(0.3)
        assert capsys.readouterr().err == ""
        bar.reach("rows", 7, None)
        time.sleep(0.15)
        assert "scan db.t: rows" in capsys.readouterr().err


def test_a_script_in_a_terminal_shows_bars(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "CI"} | {"TERM": "xterm"}
    script = f"{JOB}table.append(slow())\nprint(table.scan().count())\n"
    ran = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=theirs, env=environment, cwd=tmp_path
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 65_536):
            seen += part
    except OSError:  # Linux says so at the end of a terminal
        pass
    output, _ = ran.communicate(timeout=60)
    os.close(ours)
    assert output == b"1000\n"
    assert b"write db.t: rows" in seen
    assert b"Traceback" not in seen


@pytest.mark.slow
def test_a_notebook_shows_a_bar_below_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    cells = [JOB, "table.append(slow()); None", "with icefield.progress(False):\n    table.append(slow())"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    first, bar, hidden = (cell.outputs for cell in notebook.cells)
    assert (first, hidden) == ([], [])
    (output,) = bar
    assert output.output_type == "display_data"
    assert output.data["text/html"].startswith(
        '<div>write db.t: rows <progress value="1000" max="1000"></progress> 1,000 of 1,000 0:00:0'
    )


def test_names_from_tables_are_escaped_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    from icefield_progress import notebook_line

    pages: list[dict[str, str]] = []
    monkeypatch.setattr(notebook_line, "display", lambda page, **options: pages.append(page))
    notebook_line.new_line().draw("write <script>", 1, None, 61)
    assert pages == [
        {"text/html": "<div>write &lt;script&gt; 1 0:01:01</div>", "text/plain": "write <script> 1 0:01:01"}
    ]


def test_a_pipe_is_not_interactive_and_a_closed_standard_error_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sys, "stderr", None)
    assert not places.is_interactive()
