"""Virtual environments with this repository, and runs of its tests in them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from repository import ROOT

_SUPPORT = ROOT / "tests/support"
UV = [sys.executable, "-m", "uv"]


def environment(folder: Path, interpreter: str, plugins: list[str], arguments: list[str]) -> Path:
    """The Python of an environment with the kernel and some plugins; made when it is missing.

    ``arguments`` are further arguments of ``uv pip install``.
    """
    python, stamp = folder / "bin" / "python", folder / "made"
    made_of = repr((plugins, arguments))
    if stamp.exists() and stamp.read_text("utf-8") == made_of:
        return python
    sources = [ROOT, *(ROOT / "plugins" / name for name in plugins), ROOT / "examples/plugin-template", _SUPPORT]
    editable = [part for source in sources for part in ("-e", str(source))]
    subprocess.run([*UV, "venv", "--quiet", "--clear", "--python", interpreter, folder], check=True)
    subprocess.run([*UV, "pip", "install", "--quiet", "--python", python, *editable, *arguments], check=True, cwd=ROOT)
    stamp.write_text(made_of, "utf-8")
    return python


def run_tests(python: Path, arguments: list[str]) -> tuple[bool, str]:
    """Whether tests pass under a Python, and how many passed, failed and were skipped."""
    lines = []
    with subprocess.Popen(
        [python, "-m", "pytest", *arguments], cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    last = next((line for line in reversed(lines) if " passed" in line or " failed" in line), "none ran")
    found = ", ".join(re.findall(r"\d+ (?:passed|failed|skipped|errors?)", last)) or last.strip()
    return process.returncode == 0, found


def versions(python: Path, distributions: list[str]) -> list[str]:
    """The versions of distributions under a Python."""
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    command = [python, "-c", code, *distributions]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout.split()
