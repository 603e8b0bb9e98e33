"""Decision records: their form, their list, and the links from code to them."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest
from repository import ROOT, text_of, tracked_files

FOLDER = Path("docs/decisions")
RECORDS = sorted(path for path in tracked_files() if path.parent == FOLDER and path.name[0].isdigit())
NUMBERS = {path.name[:4] for path in RECORDS}
STATUS = re.compile(r"\*\*Status\.\*\* (Accepted|Replaced by \[(\d{4})\]\(\S+\.md\)), (\d{4}-\d\d-\d\d)\.")
LINK = re.compile(r"docs/decisions/(\d{4})")
# Records that explain no code, with the reason.
WITHOUT_CODE = {
    "0008": "it names the modules of a design that `0047` replaced",
}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_a_record_has_a_number_a_status_and_a_date(path: Path) -> None:
    title, empty, status, *_ = text_of(path).splitlines()
    assert title.startswith(f"# {path.name[:4]}: ")
    assert empty == ""
    found = STATUS.match(status)
    assert found is not None, f"{path} has no line like '**Status.** Accepted, 2026-11-22.'"
    assert dt.date.fromisoformat(found[3]) >= dt.date(2026, 11, 1)
    assert found[2] is None or found[2] in NUMBERS


def test_numbers_are_given_once_and_each_record_is_listed() -> None:
    assert len(NUMBERS) == len(RECORDS)
    titles = [f"- [{text_of(path).splitlines()[0].removeprefix('# ')}]({path.name})" for path in RECORDS]
    assert [line for line in text_of(FOLDER / "README.md").splitlines() if line.startswith("- [")] == titles


def links() -> set[tuple[str, str]]:
    """Each file of code with the number of each record that it names."""
    linking = [path for path in tracked_files() if path.suffix == ".py" or path.name == "Makefile"]
    return {(str(path), number) for path in linking for number in LINK.findall(text_of(path))}


def test_each_link_from_code_leads_to_a_record() -> None:
    assert [link for link in sorted(links()) if link[1] not in NUMBERS] == []
    assert (ROOT / FOLDER).is_dir()


def test_each_record_is_linked_from_the_code_that_it_explains() -> None:
    linked = {number for _, number in links()}
    assert sorted(NUMBERS - linked) == sorted(WITHOUT_CODE), "write `# See docs/decisions/NNNN.` where the code is"
