"""A page is there whole, or what was there before it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
from icefield_report.whole_files import write_whole


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("step", ["write_text", "copymode", "replace"])
def test_an_interrupt_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, is_there: bool
) -> None:
    page = tmp_path / "page.html"
    if is_there:
        page.write_bytes(b"before")

    def interrupted(*arguments: Any) -> None:
        if step == "write_text":
            arguments[0].write_bytes(b"hal")
        raise KeyboardInterrupt

    owner = {"write_text": "pathlib.Path.write_text", "copymode": "shutil.copymode", "replace": "os.replace"}[step]
    monkeypatch.setattr(owner, interrupted)
    if step == "copymode" and not is_there:
        write_whole(page, "half of a page")
        assert page.read_bytes() == b"half of a page"
        return
    with pytest.raises(KeyboardInterrupt):
        write_whole(page, "half of a page")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("page.html", b"before")] * is_there


def test_a_link_stays_one_and_the_rights_stay(tmp_path: Path) -> None:
    (tmp_path / "old.html").write_text("before")
    (tmp_path / "old.html").chmod(0o640)
    (tmp_path / "page.html").symlink_to("old.html")
    write_whole(tmp_path / "page.html", "after")
    assert (tmp_path / "page.html").is_symlink()
    assert (tmp_path / "old.html").read_text() == "after"
    assert (tmp_path / "old.html").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_whole(tmp_path / "pipe", "after")
    reader.join()
    assert read == ["after"]
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]
