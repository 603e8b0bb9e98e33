"""The documentation is correct: its code runs, its links have targets, and its generated pages are current."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fenced import Block, Page, agrees, commands, is_run, pages
from icefield.plugins import hookspecs
from icefield_cli.main import main
from repository import ROOT, text_of, tracked_files

HOOKS_PAGE = Path("docs/plugins/hooks.md")
PROJECT = tomllib.loads(text_of(Path("pyproject.toml")))["project"]
TARGETS = set(re.findall(r"^([a-z][\w-]*):", text_of(Path("Makefile")), re.MULTILINE))


def ids(found: Page) -> str:
    return str(found.path)


def run(page: Page, folder: Path, *, spark: bool) -> None:
    """Run a page from its first block to its last, in a folder of its own."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in page.blocks:
        if is_run(block) or (spark and block.language == "python" and block.argument == "spark"):
            # The code keeps the line numbers of the page, so that a traceback leads to the page.
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("\n" * (block.line - 1) + block.text, str(ROOT / page.path), "exec"), namespace)
            printed = out.getvalue()
        elif block.language == "output":
            assert agrees(block.text, printed), f"{page.path}:{block.line}: the block before prints\n{printed}"
        elif block.language == "toml" and block.argument and "/" not in block.argument:
            (folder / block.argument).write_text(block.text, "utf-8")
        elif block.language == "console":
            run_commands(page, block)


def run_commands(page: Page, block: Block) -> None:
    for command in commands(block):
        name, *arguments = shlex.split(command.line)
        assert name == "icefield", f"{page.path}:{block.line}: only `icefield` is run in a console block"
        with (
            contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            status = main(arguments)
        out.flush()
        said = out.buffer.getvalue().decode() + err.getvalue()
        assert status == 0 or command.printed, f"{page.path}:{block.line}: `{command.line}` failed: {said}"
        assert command.prints(said), f"{page.path}:{block.line}: `{command.line}` prints\n{said}"


@pytest.mark.parametrize("page", [page for page in pages() if page.runs], ids=ids)
def test_what_a_page_shows_runs(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path, spark=False)


@pytest.fixture(scope="module")
def spark_session() -> Iterator[None]:
    """A Spark session for pages that need one; the session of another test, if there is one."""
    pytest.importorskip("pyspark")
    from icefield_spark import ensure_java
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        yield
        return
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
    session = builder.getOrCreate()
    yield
    session.stop()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in pages() if page.runs_spark], ids=ids)
def test_what_a_page_shows_runs_on_spark(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_session: None
) -> None:
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path, spark=True)


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_every_link_of_a_page_leads_somewhere(page: Page) -> None:
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        found = (ROOT / page.path.parent / target).resolve() if target else ROOT / page.path
        assert found.exists(), f"{page.path} links to {link}, which is not there"
        assert found.is_relative_to(ROOT), f"{page.path} links out of the repository: {link}"
        if anchor:
            anchors = Page(found.relative_to(ROOT)).anchors
            assert anchor in anchors, f"{page.path} links to {link}, and there is no such heading"


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_a_block_of_a_file_is_as_in_the_file(page: Page) -> None:
    for block in page.blocks:
        if "/" in block.argument:
            assert Path(block.argument) in tracked_files(), f"{page.path}:{block.line}: no file {block.argument}"
            assert block.text in text_of(Path(block.argument)), f"{page.path}:{block.line} differs from the file"


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_a_page_begins_with_its_title_and_keeps_its_lines_short(page: Page) -> None:
    assert page.text.startswith("# ")
    too_long = [line for line in page.prose.splitlines() if len(line) > 120 and not line.startswith(("|", "- `"))]
    assert too_long == []


@pytest.mark.parametrize("page", pages(), ids=ids)
def test_commands_and_extras_that_a_page_names_exist(page: Page) -> None:
    made = set(re.findall(r"(?:^|`|\$ )make ([a-z][\w-]*)", page.text, re.MULTILINE))
    assert made <= TARGETS, f"{page.path} names targets that the Makefile does not have: {made - TARGETS}"
    extras = {extra for found in re.findall(r"icefield\[([a-z,]+)\]", page.text) for extra in found.split(",")}
    assert extras <= PROJECT["optional-dependencies"].keys()


def test_the_readme_says_what_each_extra_brings() -> None:
    listed = re.findall(r"^\| `icefield\[([a-z0-9-]+)\]` \|", Page(Path("README.md")).text, re.MULTILINE)
    assert sorted(listed) == sorted(PROJECT["optional-dependencies"])


def test_the_readme_opens_with_two_commands_and_an_example_of_twelve_lines() -> None:
    first, second = list(Page(Path("README.md")).blocks)[:2]
    assert [line.partition("#")[0].strip() for line in first.text.splitlines()] == ["make quickstart", "make test"]
    assert second.language == "python"
    assert len(second.text.splitlines()) == 12


def hooks() -> list[str]:
    return sorted(name for name in vars(hookspecs) if name.startswith("icefield_"))


@pytest.mark.parametrize("hook", hooks())
def test_a_hook_is_documented_with_its_arguments(hook: str) -> None:
    parameters = inspect.signature(getattr(hookspecs, hook)).parameters.values()
    arguments = ", ".join(f"{parameter.name}: {parameter.annotation}" for parameter in parameters)
    assert f"`{hook}({arguments})`" in Page(HOOKS_PAGE).headings


@pytest.mark.parametrize("hook", hooks())
def test_a_hook_has_a_test(hook: str) -> None:
    tests = (path for path in tracked_files() if path.match("tests/unit/plugins/test_*.py"))
    assert any(re.search(rf"^def test_hook_{hook}", text_of(path), re.MULTILINE) for path in tests)


def test_the_page_of_hooks_names_no_other() -> None:
    assert {name.partition("(")[0].strip("`") for name in Page(HOOKS_PAGE).headings[1:] if "(" in name} == set(hooks())


def test_the_generated_pages_are_current() -> None:
    for path, text in _script(ROOT / "docs/make_reference.py").pages().items():
        assert path.read_text("utf-8") == text, f"{path.relative_to(ROOT)} is out of date: run `make reference`"


def _script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
