"""A Java program starts without a message when its archive of classes is absent, broken or made for another program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import java_classes
import pytest

VERSION = ("--version",)


@pytest.mark.parametrize("content", [None, b"", b"no archive" * 1_000], ids=["absent", "empty", "broken"])
def test_java_runs_without_an_archive_that_it_cannot_use(tmp_path: Path, content: bytes | None) -> None:
    found = java_classes.archive(tmp_path, "program", _java())
    if content is not None:
        found.write_bytes(content)
    said, alone = (_said(options, *VERSION).replace(", sharing", "") for options in (java_classes.using(found), ""))
    assert said == alone  # whether Java's own archive is used then is left to Java


def test_the_first_run_makes_the_archive_and_the_next_uses_it(jar: Path) -> None:
    found = java_classes.archive(jar.parent, "program", _java())
    with java_classes.used_or_made(found, _java()) as options:
        assert _said(options, "-cp", str(jar), "Hello") == "hello\n"
    assert found.exists()
    with java_classes.used_or_made(found, _java()) as options:
        loaded = _said(options, "-Xlog:class+load", "-cp", str(jar), "Hello")
    assert "Hello source: shared objects file (top)" in loaded


def test_an_archive_of_other_classes_is_passed_over(jar: Path) -> None:
    found = java_classes.archive(jar.parent, "program", _java())
    with java_classes.used_or_made(found, _java()) as options:
        _said(options, "-cp", str(jar), "Hello")
    other = jar.with_name("other.jar")
    shutil.copyfile(jar, other)
    assert _said(java_classes.using(found), "-cp", str(other), "Hello") == "hello\n"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A program ``Hello``."""
    if shutil.which("javac") is None:
        pytest.skip("there is no compiler of Java")
    source = tmp_path / "Hello.java"
    source.write_text('public class Hello { public static void main(String[] a) { System.out.println("hello"); } }')
    for command in (["javac", "Hello.java"], ["jar", "cf", "hello.jar", "Hello.class"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "hello.jar"


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        pytest.skip("there is no Java")
    return java


def _said(options: str, *program: str) -> str:
    """The standard output of a Java program."""
    command = [_java(), *options.split(), *program]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout
