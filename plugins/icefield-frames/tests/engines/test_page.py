"""The examples of the page about engines."""

from __future__ import annotations

import contextlib
import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

for engine in ("ray", "daft", "dask"):
    pytest.importorskip(engine)

from fenced import Page, agrees  # noqa: E402


def test_what_the_page_shows_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    blocks = list(Page(Path("docs/guide/engines.md")).blocks)
    names: dict[str, Any] = {"__name__": "page"}
    compared = 0
    for block, following in pairwise([*blocks, None]):
        if block is None or (block.language, block.argument) != ("python", "engines"):
            continue
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(block.text, f"engines.md:{block.line}", "exec"), names)
        if following is not None and following.language == "output":
            assert agrees(following.text, printed.getvalue()), f"line {block.line} prints {printed.getvalue()!r}"
            compared += 1
    assert compared == 3
    names["ray"].shutdown()
