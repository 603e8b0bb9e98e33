"""Decision records: their form, their list, and references to them in code."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest
from repository import text_of, tracked_files

FOLDER = Path("docs/decisions")
RECORDS = sorted(path for path in tracked_files() if path.parent == FOLDER and path.name[0].isdigit())
NUMBERS = {path.name[:4] for path in RECORDS}
STATUS = re.compile(r"\*\*Status\.\*\* Accepted, (\d{4}-\d\d-\d\d)\.")
LINK = re.compile(r"docs/decisions/(\d{4})")
SPOKEN = re.compile(r"\b[Dd]ecision (\d{4})\b")
BANNER = re.compile(r"^\s*# See docs/decisions/\d{4}\b[^a-z]*(?:and docs/decisions/\d{4}\.)?$", re.MULTILINE)
PARTS = ("**Context.** ", "**Decision.** ", "**Consequences.** ")
MAX_WORDS = 240
MAX_TITLE = 100


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_a_record_has_a_number_a_status_a_date_and_three_parts(path: Path) -> None:
    title, empty, status, *_ = text_of(path).splitlines()
    assert title.startswith(f"# {path.name[:4]}: ")
    assert len(title) <= MAX_TITLE
    assert empty == ""
    found = STATUS.match(status)
    assert found is not None, f"{path} has no line like '**Status.** Accepted, 2026-11-22.'"
    assert dt.date.fromisoformat(found[1]) >= dt.date(2026, 11, 1)
    begun = [part for line in text_of(path).splitlines() for part in PARTS if line.startswith(part)]
    assert begun == list(PARTS)


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_a_record_is_short_and_names_a_rejected_alternative(path: Path) -> None:
    text = text_of(path)
    assert len(text.split()) <= MAX_WORDS
    assert "Rejected: " in text


def test_numbers_are_given_once_and_each_record_is_listed() -> None:
    assert len(NUMBERS) == len(RECORDS)
    titles = [f"- [{text_of(path).splitlines()[0].removeprefix('# ')}]({path.name})" for path in RECORDS]
    assert [line for line in text_of(FOLDER / "README.md").splitlines() if line.startswith("- [")] == titles


def test_each_page_of_internals_is_listed() -> None:
    pages = {path.name for path in tracked_files() if path.parent == Path("docs/internals")} - {"README.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", text_of(Path("docs/internals/README.md")))) == pages


def code() -> list[Path]:
    """Files that may refer to records."""
    found = [path for path in tracked_files() if path.suffix == ".py" or path.name == "Makefile"]
    return [path for path in found if path != Path("tests/project/test_decisions.py")]


def test_a_record_that_code_or_a_page_names_is_there() -> None:
    pages = [path for path in tracked_files() if path.suffix == ".md"]
    named = {(str(path), each) for path in code() for each in LINK.findall(text_of(path))}
    named |= {(str(path), each) for path in [*code(), *pages] for each in SPOKEN.findall(text_of(path))}
    assert [name for name in sorted(named) if name[1] not in NUMBERS] == []


def test_no_comment_only_names_a_record() -> None:
    assert [str(path) for path in code() if BANNER.search(text_of(path))] == []
