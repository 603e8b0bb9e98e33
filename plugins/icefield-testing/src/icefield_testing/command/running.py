"""The command ``icefield kit``: it finds the contract of a class, runs its suites in a process, and prints a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icefield import IcefieldError
from icefield.errors import InvalidArgument
from icefield.toolkit import without_credentials
from icefield_cli import Context, WrongUsage

from icefield_testing.command.child import OUTCOMES, REQUEST
from icefield_testing.command.request import CONTRACTS, Request, kind_of, load, suites_of
from icefield_testing.command.suites import check_names

Record = Mapping[str, Any]

# The exit statuses of pytest.
_ENDED = {0, 1}
_USAGE = 4
_NOTHING_RAN = 5
_REASON_LINES = 12


def run(
    context: Context,
    target: str,
    location: str | None,
    raw: str | None,
    service_port: str | None,
    suite: tuple[str, ...],
    check: str | None,
    attributes: tuple[tuple[str, str], ...],
    kit_version: str | None,
) -> None:
    """Run the suites of a class. Raises ``IcefieldError`` if a check fails."""
    properties = {key: str(value) for key, value in context.catalog_properties.items()}
    request = Request(target, properties, location, raw, service_port, suite, check, dict(attributes), kit_version)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` does: the plugin may not be installed
    found = load(target)
    kind = kind_of(target, found)
    check_names(request)
    suites = request.suites or suites_of(kind, found, properties)
    if kind == "file system" and "FileSystemSuite" in suites and (raw is None or location is None):
        raise WrongUsage(
            "a file system is looked at from outside as well: give --location with a location of its scheme, and --raw "
            "with the same place as a folder or as a URL of fsspec"
        )
    if not context.json:
        context.line(f"{target}: {_described(kind)}")
    with tempfile.TemporaryDirectory(prefix="icefield-kit-") as folder:
        request.write(Path(folder, REQUEST))
        with context.progress(f"checking {target}"):
            ended = _child(folder)
        outcomes = Path(folder, OUTCOMES)
        written = outcomes.read_text("utf-8").splitlines() if outcomes.exists() else []
    # A broken plugin may show a credential in an error. The report hides it.
    records = [{k: without_credentials(v, properties) for k, v in json.loads(line).items()} for line in written]
    if ended.returncode not in _ENDED or not records:
        raise _unfinished(request, ended, records)
    _print(context, records, suites)
    failed = sum(record["outcome"] == "failed" for record in records)
    if failed:
        raise IcefieldError(f"{failed} of {len(records)} checks failed")


def _described(kind: str) -> str:
    contract = CONTRACTS.get(kind)
    if contract is None:
        return "a listener, by the hook icefield_events"
    return f"a {kind}, by version {contract.contract} of the contract icefield.abc.{contract.__name__}"


def _child(folder: str) -> subprocess.CompletedProcess[str]:
    """Run the suites in another process, with the ``sys.path`` of this process."""
    command = [sys.executable, "-m", "icefield_testing.command.child", folder]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", errors="replace", check=False
    )


def _unfinished(
    request: Request, ended: subprocess.CompletedProcess[str], records: list[dict[str, Any]]
) -> IcefieldError:
    if ended.returncode == _NOTHING_RAN and request.check:
        return InvalidArgument(f"no check has '{request.check}' in its name")
    said = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
    if ended.returncode == _USAGE:
        return InvalidArgument(said[-1].removeprefix("ERROR: "))
    last = f"; the last check that ended is {records[-1]['check']}" if records else ""
    return IcefieldError(f"the checks ended early, with status {ended.returncode}{last}: {' '.join(said[-6:])}")


def _print(context: Context, records: list[dict[str, Any]], suites: tuple[str, ...]) -> None:
    if context.json:
        context.rows(records, ())
        return
    totals: list[Record] = []
    for suite in suites:
        counted = Counter(record["outcome"] for record in records if record["suite"] == suite)
        totals.append({"suite": suite, **{name: counted[name] for name in ("passed", "failed", "skipped", "left out")}})
    context.rows(totals, ("suite", "passed", "failed", "skipped", "left out"))
    _print_failures(context, [record for record in records if record["outcome"] == "failed"])
    for outcome in ("skipped", "left out"):
        reasons = Counter(record["reason"] for record in records if record["outcome"] == outcome)
        if reasons:
            context.line("")
            context.line(f"{outcome}:")
        for reason, count in reasons.most_common():
            context.line(f"  {count:>3}  {reason}", 7)


def _print_failures(context: Context, failed: list[dict[str, Any]]) -> None:
    """Print each failure with the advice of its check. Checks with the same reason and advice are printed together."""
    together: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in failed:
        together.setdefault((record["reason"], record["advice"]), []).append(record)
    for (reason, advice), records in together.items():
        first = records[0]
        more = f" and {len(records) - 1} more" if len(records) > 1 else ""
        context.line("")
        context.line(f"failed: {first['suite']}.{first['check']}{more}")
        for line in [*reason.splitlines()[:_REASON_LINES], *advice.splitlines()]:
            context.line(f"  {line}", 2)
