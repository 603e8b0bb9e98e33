"""Tests of the other processes that checks start."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from icefield_testing.processes import ended, ran


@pytest.fixture
def cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which a process that aborts leaves its memory where the system's administrator asks for that."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    resource.setrlimit(resource.RLIMIT_CORE, before)


def test_a_forked_process_that_aborts_does_not_write_its_memory_to_disk(cores: Path) -> None:
    assert ended(os.abort, 60.0) == -signal.SIGABRT
    assert ended(lambda: os._exit(min(1, resource.getrlimit(resource.RLIMIT_CORE)[0])), 60.0) == 0
    assert [*cores.iterdir()] == []


def test_a_fresh_interpreter_that_aborts_does_not_write_its_memory_to_disk(cores: Path, tmp_path: Path) -> None:
    script = tmp_path / "aborts.py"
    script.write_text("import os; os.abort()")
    status, _ = ran(str(script), b"", 60.0)
    assert status == -signal.SIGABRT
    assert [*cores.iterdir()] == [script]
