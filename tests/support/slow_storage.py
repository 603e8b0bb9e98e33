"""Local storage that does not answer for some files."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from icefield.abc import InputFile
from icefield.builtin.local import LocalFileSystem


def hold_reads(monkeypatch: pytest.MonkeyPatch, parts: Sequence[str], until: threading.Event) -> None:
    """Delay reads of files until an event, or for a minute, if their locations contain one of the parts."""
    opens = LocalFileSystem.open_input

    def open_input(self: LocalFileSystem, location: str) -> InputFile:
        if any(part in location for part in parts):
            until.wait(60)
        return opens(self, location)

    monkeypatch.setattr(LocalFileSystem, "open_input", open_input)
