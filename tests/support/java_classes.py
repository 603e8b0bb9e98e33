"""Archives of the classes that a program in Java loads: with an archive, Spark uses a quarter less CPU.

The first run of a program makes its archive, for the runs after it. Java itself checks whether an archive fits this
Java and the jars of the class path, and runs without an archive that is missing or does not fit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

# Most such programs live for seconds: with the JVM's first compiler alone a Spark job takes a quarter less CPU time. A
# session of minutes would fill the default code cache of this compiler, and compile again.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m -XX:MetaspaceSize=160m"
_QUIET = "-Xlog:disable"  # Java would print on its output that an archive is not for this program


def of_pyspark() -> Path:
    """The path of the archive for the environment's own PySpark, which is deleted with the environment."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java") or ""
    return archive(Path(sys.prefix), "pyspark", java)


def archive(folder: Path, program: str, java: str) -> Path:
    """The path of a program's archive in the folder of its software; each Java installation has its own archive."""
    own = _own(java)
    build = crc32(f"{own} {own.stat().st_mtime_ns}".encode()) if own.exists() else 0
    return folder / f"{program}-{build:08x}.jsa"


def using(found: Path) -> str:
    """The Java options for a program that uses its archive, if there is one."""
    return f"-XX:SharedArchiveFile={found} {_QUIET}" if " " not in str(found) else ""


@contextmanager
def used_or_made(found: Path, java: str) -> Iterator[str]:
    """The Java options for a program that ends within the block and creates a missing archive."""
    own = _own(java)
    if found.exists() or not own.exists() or " " in f"{found}{own}":
        yield using(found)
        return
    made = found.with_suffix(f".{os.getpid()}")
    yield f"-XX:SharedArchiveFile={own} -XX:ArchiveClassesAtExit={made} {_QUIET}"
    if made.exists():
        made.replace(found)


def ended(spark: Any) -> None:
    """Stop a session and wait until its Java process is gone, since PySpark does not wait for it."""
    process = spark.sparkContext._gateway.proc
    spark.stop()
    end(process)


def end(process: subprocess.Popen[Any], seconds: float = 60) -> None:
    """End a process by closing its input; kill it when it takes longer than that."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _own(java: str) -> Path:
    """The archive of a Java installation for its own classes."""
    return Path(os.path.realpath(java)).parent.parent / "lib" / "server" / "classes.jsa"
