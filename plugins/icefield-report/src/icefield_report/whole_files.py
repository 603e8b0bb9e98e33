"""Local files that are there whole or as they were before, whatever interrupts the writing."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, text: str) -> None:
    """Write a file under another name and then give it its own. Raises ``OSError``.

    What is no regular file, as ``/dev/stdout`` is not, is written to as it is.
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
