"""Long tables go through the pager on a terminal, and only there."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import icefield
import pyarrow as pa
import pytest

pty = pytest.importorskip("pty")

_PAGER = "import sys; [print('paged:', line, end='') for line in sys.stdin]"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = f"file://{tmp_path_factory.mktemp('pager')}"
    catalog = icefield.load_catalog("pager", type="directory", warehouse=folder)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append({"id": list(range(300))})
    return folder


def printed(warehouse: str, folder: Path, *arguments: str, is_terminal: bool = True) -> str:
    """The output of a command on a terminal of 24 lines whose pager marks each line."""
    script = folder / "pager.py"
    script.write_text(_PAGER)
    environment = {**os.environ, "PAGER": f"{sys.executable} {script}", "TERM": "xterm"}
    for name in ("LINES", "COLUMNS"):
        environment.pop(name, None)
    properties = ["-p", "type=directory", "-p", f"warehouse={warehouse}"]
    command = [sys.executable, "-m", "icefield_cli.main", "scan", "db.t", *arguments, *properties]
    if not is_terminal:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(command, env=environment, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE) as process:
        os.close(theirs)
        found = b""
        while True:
            try:
                read = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            found += read
        assert process.wait() == 0, process.stderr.read() if process.stderr else ""
    os.close(ours)
    return found.decode()


def test_a_long_table_goes_through_the_pager(warehouse: str, tmp_path: Path) -> None:
    found = printed(warehouse, tmp_path, "--all")
    assert found.count("paged:") >= 301
    assert "299" in found


@pytest.mark.parametrize("arguments", [("--limit", "5"), ("--all", "--no-pager"), ("--all", "--output", "jsonl")])
def test_short_tables_and_other_forms_do_not(warehouse: str, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    found = printed(warehouse, tmp_path, *arguments)
    assert "paged:" not in found
    assert found.count("\n") >= 5


def test_a_pipe_has_no_pager(warehouse: str, tmp_path: Path) -> None:
    found = printed(warehouse, tmp_path, "--all", is_terminal=False)
    assert ("paged:" in found, found.count("\n")) == (False, 301)
