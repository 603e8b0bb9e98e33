"""Atomic writes of local files: an interrupted write leaves the old file unchanged."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, text: str) -> None:
    """Write a file under a temporary name and then rename it. Raises ``OSError``.

    A path that exists and is no regular file, such as ``/dev/stdout``, is written to directly.
    """
    old = _mode(path)
    if old is not None and not stat.S_ISREG(old):
        path.write_text(text, "utf-8")
        return
    target = Path(os.path.realpath(path))  # a link stays one
    new = target.with_name(f".{target.name[:100]}.{uuid4().hex}")
    try:
        new.write_text(text, "utf-8")
        if old is not None:
            shutil.copymode(target, new)
        os.replace(new, target)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None
