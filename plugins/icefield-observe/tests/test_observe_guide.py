"""The guide's examples, in a process of their own, since OpenTelemetry's providers are set once in each."""

from __future__ import annotations

import subprocess
import sys

from repository import ROOT


def test_the_examples_of_the_guide_print_what_it_shows() -> None:
    program = "from pathlib import Path\nfrom fenced import run_page\nrun_page(Path('docs/guide/observability.md'))"
    folder = ROOT / "tests/support"
    command = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(folder)!r})\n{program}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_hooks_imports_no_library() -> None:
    code = "import icefield_observe.opentelemetry.hooks, sys; print('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"
