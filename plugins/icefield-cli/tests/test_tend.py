"""``icefield tend`` run once, from cron, in a loop, and beside a table that hangs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pytest
from event_rows import ids, rows
from unchecked_properties import stated

Run = Callable[..., Any]

ICEFIELD = str(Path(sys.executable).parent / "icefield")
POLICY = 'record = "ops.tend"\nlease = "2s"\n[[rules]]\ntables = "db.*"\nfiles-per-scan = 2\nsnapshots = 2\n'


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    return str(path)


def grown(table: icefield.Table, count: int = 4) -> None:
    for number in range(count):
        table.append(rows(table, (10 + number, "a")))


def files(catalog: icefield.Catalog, name: str = "db.events") -> int:
    return catalog.load_table(name).inspect.data_files().num_rows


def settings(properties: dict[str, str]) -> list[str]:
    return ["--catalog", "test", *[part for each in properties.items() for part in ("-p", "=".join(each))]]


def test_a_table_is_kept_at_its_goals(run: Run, catalog: icefield.Catalog, events: icefield.Table, policy: str) -> None:
    grown(events)
    planned = run("tend", policy, "--dry-run", "--output", "jsonl")
    assert [(each["operation"], each["outcome"]) for each in planned.objects] == [
        ("rewrite_data_files", "planned"),
        ("expire_snapshots", "planned"),
    ]
    assert files(catalog) == 6
    done = run("tend", policy)
    assert (done.status, done.lines[1].split()[:3]) == (0, ["db.events", "rewrite_data_files", "done"])
    assert (files(catalog), ids(catalog)) == (2, [1, 2, 10, 11, 12, 13])
    again = run("tend", policy)
    assert (again.status, again.out, again.err.strip()) == (0, "", "1 table is at its goals")


def test_the_policy_is_that_of_the_configuration_or_else_the_properties_of_tables(
    run: Run, catalog: icefield.Catalog, events: icefield.Table, policy: str
) -> None:
    grown(events)
    assert run("tend").err.strip() == "1 table is at its goals"
    events.set_properties({"tend.files-per-scan": "2"})
    assert [each["operation"] for each in run("tend", "--dry-run", "--output", "jsonl").objects] == [
        "rewrite_data_files"
    ]
    assert len(run("tend", "-p", f"tend.policy={policy}", "--output", "jsonl").objects) == 2


def test_a_policy_that_names_no_table_says_so(
    run: Run, catalog: icefield.Catalog, events: icefield.Table, policy: str
) -> None:
    grown(events)
    Path(policy).write_text(POLICY.replace("db.*", "bd.*"))
    assert run("tend", policy).err.strip() == "no rule or erasure names one of the tables: nothing is done"
    Path(policy).write_text(POLICY.replace("db.*", "db.events"))
    catalog.create_table("db.other", events.schema())
    assert run("tend", policy, "--table", "db.other").err.strip().startswith("no rule or erasure names")
    ran = run("tend", "")
    assert (ran.status, "the policy '' cannot be read" in ran.err) == (1, True)


def test_the_change_of_a_scan_has_a_sign_unless_it_is_zero(run: Run, events: icefield.Table, policy: str) -> None:
    grown(events)
    rewrite, expiry = (line.split()[3:7] for line in run("tend", policy, "--dry-run").lines[1:])
    assert (rewrite[0], rewrite[1:3]) == ("-4", ["0", "B"])
    assert expiry == ["0", "0", "B", "0"]


def test_a_failed_operation_is_the_status_of_the_command(
    run: Run, catalog: icefield.Catalog, events: icefield.Table, policy: str
) -> None:
    stated(events, tend_files__per__scan="-1")
    ran = run("tend", policy)
    assert (ran.status, "1 of 1 operations failed, or are overdue" in ran.err) == (1, True)


@pytest.mark.slow
def test_cron_runs_the_line_of_the_guide(events: icefield.Table, properties: dict[str, str]) -> None:
    """With the environment of cron: a shell, the home, and little else. Two runs that overlap do the work once."""
    guide = Path(__file__).parents[3] / "docs/guide/tend.md"
    line = guide.read_text(encoding="utf-8").split("From cron: `*/10 * * * * ")[1].split("`")[0]
    folder = Path(os.environ["HOME"])
    (folder / "policy.toml").write_text(POLICY)
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in properties.items())
    (folder / "icefield.toml").write_text(f"[catalog.lake]\n{lines}\n")
    catalog = icefield.load_catalog("lake", **properties)
    catalog.create_namespace_if_not_exists("db")
    grown(catalog.create_table_if_not_exists("db.events", events.schema(), partition_spec=["kind"]), 6)
    environment = {"HOME": str(folder), "SHELL": "/bin/sh", "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    started = [
        subprocess.Popen(["/bin/sh", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    printed = [each.communicate(timeout=120)[0] for each in started]
    assert [each.returncode for each in started] == [0, 0], printed
    assert files(catalog) <= 2
    record = catalog.load_table("ops.tend").scan().to_arrow().to_pylist()
    assert sorted((each["operation"], each["outcome"]) for each in record) == [
        ("expire_snapshots", "done"),
        ("rewrite_data_files", "done"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_every_goes_on_until_the_process_is_stopped(
    catalog: icefield.Catalog,
    events: icefield.Table,
    properties: dict[str, str],
    policy: str,
    ending: signal.Signals,
) -> None:
    command = [ICEFIELD, "tend", policy, "--every", "1s", *settings(properties)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(2):
            grown(events)
            end = time.monotonic() + 60
            while files(catalog) > 3:  # two of one partition, and one of the other
                assert time.monotonic() < end
                assert running.poll() is None, running.communicate()
                time.sleep(0.2)
        time.sleep(1)
        assert running.poll() is None
    finally:
        running.send_signal(ending)
        printed, _ = running.communicate(timeout=60)
    assert running.returncode in (130, -ending)
    assert printed.count("rewrite_data_files") >= 2
    lines = printed.splitlines()
    headings = [at for at, line in enumerate(lines) if line.startswith("table  ")]
    assert headings
    assert not any(at + 1 == len(lines) or at + 1 in headings for at in headings), printed
    assert len(ids(catalog)) == 10


_HANGS = """
import sys, time
from icefield_maintenance import MaintenanceTable
original = MaintenanceTable.rewrite_data_files
def rewrite_data_files(self, **options):
    if self._table.name() == ("db", "events") and not options.get("dry_run"):
        time.sleep(600)
    return original(self, **options)
MaintenanceTable.rewrite_data_files = rewrite_data_files
from icefield_cli.main import main
sys.exit(main())
"""


@pytest.mark.slow
def test_a_table_that_hangs_holds_neither_the_others_nor_the_end_of_the_process(
    catalog: icefield.Catalog, events: icefield.Table, properties: dict[str, str], policy: str
) -> None:
    Path(policy).write_text(POLICY + '[budget]\ntime-per-table = "4s"\n')
    other = catalog.create_table("db.other", events.schema(), partition_spec=["kind"])
    grown(events, 9)
    grown(other)
    command = [sys.executable, "-c", _HANGS, "tend", policy, "--output", "jsonl", *settings(properties)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [(each["table"], each["outcome"]) for each in found] == [
        ("db.events", "overdue"),
        ("db.other", "done"),
        ("db.other", "done"),
    ], ran.stderr
    assert (ran.returncode, "1 of 3 operations failed, or are overdue" in ran.stderr) == (1, True)
    # The lease of the process ends, and another one does the work. The pause after a failure is of the record.
    Path(policy).write_text(POLICY.replace("ops.tend", "ops.other"))
    time.sleep(2)
    command = [ICEFIELD, "tend", policy, *settings(properties)]
    assert subprocess.run(command, check=False, timeout=120).returncode == 0
    assert files(catalog) == 2
