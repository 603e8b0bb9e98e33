"""What the command refuses before it looks at a table: status 2, and the options by their names."""

from __future__ import annotations

import re

import pytest
from icefield_cli.main import main

CHANGES = ("--rename new", "--delete", "--fast-forward main", "--retain")
TARGETS = ("--snapshot 1", "--from main")
AGES = ("--max-ref-age 1d", "--max-snapshot-age 1d", "--min-snapshots 1")


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed of wrong usage."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["scan"],
        ["scan", "db.t", "--limit", "many"],
        ["scan", "db.t", "--limit", "-1"],
        ["scan", "db.t", "--limit", "1", "--all"],
        ["scan", "db.t", "--snapshot", "1", "--ref", "main"],
        ["scan", "db.t", "--as-of", "yesterday"],
        ["namespaces", "-p", "warehouse"],
        ["namespaces", "-p", "=x"],
        ["namespaces", "--output", "xml"],
        ["create-table", "db.t"],
        ["create-table", "db.t", "--column", "id"],
        ["create-table", "db.t", "--column", "id required"],
        ["create-table", "db.t", "--column", "id blob"],
        ["properties", "db.t", "--set", "x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    printed = refused(arguments, capsys)
    assert "Usage: icefield" in printed


@pytest.mark.parametrize(
    "command",
    [
        "branch db.t b --snapshot 1 --from main",
        "branch db.t b --replace --delete",
        *(f"branch db.t b {change} {target}" for change in CHANGES for target in TARGETS),
        *(f"branch db.t b {change} {age}" for change in CHANGES[:2] for age in AGES),
        *(f"tag db.t v {change} {target}" for change in ("--delete", "--retain") for target in TARGETS),
        "tag db.t v --delete --max-ref-age 1d",
    ],
)
def test_options_that_exclude_each_other_are_named(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = refused(command.split(), capsys)
    first, second = re.findall("--[a-z-]+", command)
    assert any(f"'{one}' and '{other}' exclude" in printed for one, other in ((first, second), (second, first))), (
        printed
    )


@pytest.mark.parametrize(
    ("command", "others"),
    [
        ("expire-snapshots db.t --files", "'--dry-run'"),
        ("doctor db.t --dry-run", "'--repair'"),
        ("remove-orphans db.t --allow-recent", "'--older-than'"),
        ("rewrite-data-files db.t --max-commits 3", "'--partial-progress'"),
        ("rewrite-data-files db.t --max-failed-commits 3", "'--partial-progress'"),
        ("rollback db.t --ref main --any", "'--snapshot'"),
        ("rollback db.t --before 1d --any", "'--snapshot'"),
        ("branch db.t b --retain", "'--max-ref-age' or '--max-snapshot-age' or '--min-snapshots'"),
        ("tag db.t v --retain", "'--max-ref-age'"),
        ("branches --diff", "'NAME'"),
    ],
    ids=str,
)
def test_an_option_without_the_one_that_it_goes_with_is_wrong_usage(
    command: str, others: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = refused(command.split(), capsys)
    assert f"goes with {others}\n" in printed


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serve --port 0", "0 is not in the range 1<=x<=65535"),
        ("doctor db.t --location x", "are for catalogs"),
        ("doctor db.t --location=", "are for catalogs"),
        ("doctor db.t --read-only", "are for catalogs"),
        ("doctor --whole", "are for tables"),
        ("doctor --repair", "are for tables"),
        ("remove-orphans db.t --location= --delete", "'--location' is the folder to look into"),
        ("compute-stats db.t --only partitions --columns id", "'--columns' is for statistics of the table"),
        ("properties db.t --set a=1 --set b=2 --remove b", "'--set' and '--remove' are both given for b"),
    ],
)
def test_an_option_that_what_else_is_given_leaves_without_use_is_wrong_usage(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = refused(command.split(), capsys)
    assert said in printed
