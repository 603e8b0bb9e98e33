"""Server software is installed once, and a registry that hangs or fails does not end the test process."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from servers import process
from servers.process import Run, installed

UNAVAILABLE = (pytest.fail.Exception, pytest.skip.Exception)


@pytest.fixture(autouse=True)
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(process, "TOOLS", tmp_path / "tools")
    return tmp_path / "tools"


def test_what_fails_once_is_tried_again_in_an_empty_folder(tools: Path) -> None:
    met = []

    def make(folder: Path, run: Run) -> None:
        met.append(sorted(folder.iterdir()))
        run(["sh", "-c", "echo half > program"], folder)
        run(["sh", "-c", "exit 0" if len(met) == 2 else "exit 7"], folder)

    assert (installed("server", make) / "program").read_text() == "half\n"
    assert installed("server", make) == tools / "server"
    assert met == [[], []]
    shutil.rmtree(tools / "server")
    assert not list((installed("server", lambda folder, run: None)).iterdir()), "what was removed is made anew"


def test_what_fails_twice_is_unavailable_to_the_whole_run_and_tried_again_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def make(folder: Path, run: Run) -> None:
        tried.append(folder)
        run(["sh", "-c", "echo no such registry; exit 7"])

    for _ in range(3):
        with pytest.raises(UNAVAILABLE, match=r"server cannot be installed: .* 7.* no such registry"):
            installed("server", make)
    assert len(tried) == 2
    monkeypatch.setattr(process, "_RUN", "another")
    with pytest.raises(UNAVAILABLE):
        installed("server", make)
    assert len(tried) == 4


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_SECONDS_TO_INSTALL", 0.5)
    left = tmp_path / "left"

    def make(folder: Path, run: Run) -> None:
        run(["sh", "-c", f"(sleep 5; echo > {left}) & sleep 60"])

    begun = time.monotonic()
    with pytest.raises(UNAVAILABLE, match="timed out"):
        installed("server", make)
    assert time.monotonic() - begun < 5
    while alive := subprocess.run(["pgrep", "-f", str(left)], check=False, capture_output=True).stdout:
        assert time.monotonic() - begun < 5, alive  # a killed process takes a moment to go
        time.sleep(0.05)
