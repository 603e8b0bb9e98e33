"""Tools for servers in Java: a Java of the right version, and jars from Maven."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from servers.process import Run, installed, unavailable

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>icefield.tests</groupId><artifactId>servers</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
_NAMES = ("groupId", "artifactId", "version", "classifier")
_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent")


def java_17() -> list[str]:
    """The command of a Java 17 to 23, with the modules opened that Hadoop and Hive look into.

    Hadoop asks the security manager for the user, and Java 24 has no security manager any more.
    """
    for home in filter(None, [os.environ.get("JAVA_HOME"), *map(str, Path("/usr/lib/jvm").glob("java-*"))]):
        if _fits(program := f"{home}/bin/java"):
            break
    else:
        program = shutil.which("java") or ""
        if not _fits(program):
            unavailable("the machine has no Java 17 to 23")
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED]
    more = ["java.base/sun.nio.ch", "java.base/java.util.concurrent.atomic", "java.security.jgss/sun.security.krb5"]
    return [program, *opened, *(f"--add-opens={name}=ALL-UNNAMED" for name in more)]


def maven() -> str:
    """The program."""
    found = shutil.which("mvn")
    if found is None:
        unavailable("there is no Maven")
    return found


def maven_jars(name: str, artifacts: Iterable[str], alone: Iterable[str] = ()) -> Path:
    """Return the folder with artifacts (``group:artifact:version[:classifier]``) and their dependencies.

    The artifacts in ``alone`` come without their dependencies.
    """

    program = maven()

    def make(folder: Path, run: Run) -> None:
        dependencies = [_dependency(each) for each in artifacts] + [_dependency(each, _ALONE) for each in alone]
        (folder / "pom.xml").write_text(_POM.format("".join(dependencies)))
        command = [program, "-q", "-B", "-f", str(folder / "pom.xml"), "dependency:copy-dependencies"]
        run([*command, f"-DoutputDirectory={folder / 'jars'}"])

    return installed(name, make) / "jars"


def _dependency(artifact: str, more: str = "") -> str:
    parts = (f"<{name}>{value}</{name}>" for name, value in zip(_NAMES, artifact.split(":"), strict=False))
    return f"<dependency>{''.join(parts)}{more}</dependency>"


def _fits(program: str) -> bool:
    if not program or not Path(program).exists():
        return False
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    return found is not None and 17 <= int(found[1]) < 24
