"""The contents of the repository: its tracked files, found without leaving it."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NOT_OURS = {".git", ".venv", "__pycache__", "build", "dist"}


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file under version control, relative to the root; in a tree without git, every file of the tree."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, encoding="utf-8"
        ).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if not _NOT_OURS & set(path.parts)]
    return tuple(sorted(Path(name) for name in listed if name and (ROOT / name).is_file()))


def kernel_modules() -> list[Path]:
    """The modules of the kernel."""
    return [path for path in tracked_files() if path.suffix == ".py" and path.is_relative_to("framework/src")]


def plugin_modules() -> list[Path]:
    """The modules of the plugins and of the plugin template."""
    return [
        path
        for path in tracked_files()
        if path.suffix == ".py"
        and ("src" in path.parts)
        and (path.parts[0] == "plugins" or path.is_relative_to("examples/plugin-template"))
    ]


def plugin_folders() -> list[Path]:
    """The folder of each plugin, the template among them."""
    folders = {Path(*path.parts[:2]) for path in tracked_files() if path.parts[0] == "plugins" and len(path.parts) > 2}
    return [*sorted(folders), Path("examples/plugin-template")]


def text_of(path: Path) -> str:
    """The string of a file of the repository; bytes that are not UTF-8 are replaced."""
    return (ROOT / path).read_text("utf-8", errors="replace")
