"""Check that a catalog works, or a table: its files against the specification. Nothing changes without --repair."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import Enum

from icefield import IcefieldError
from icefield.toolkit import without_userinfo
from icefield_cli import Context, WrongUsage

from icefield_maintenance.doctor import (
    Finding,
    GroupOfChecks,
    Repair,
    RepairStep,
    Result,
    examine,
    examine_table,
    repair_table,
)

ALL = "all"


def _named(repair: Enum) -> str:
    """Return the name of a repair in the option."""
    return repair.name.lower().replace("_", "-")


REPAIRS = {_named(repair): repair for repair in Repair}


def run(
    context: Context,
    table: str | None,
    whole: bool,
    repairs: tuple[str, ...],
    dry_run: bool,
    location: str | None,
    namespace: str | None,
    read_only: bool,
) -> None:
    """Run the command."""
    if table is not None:
        if location is not None or namespace is not None or read_only:
            raise WrongUsage("--location, --namespace and --read-only are for catalogs; leave them out for a table")
        if repairs:
            _repair(context, table, repairs, whole=whole, dry_run=dry_run)
        else:
            _table(context, table, whole)
        return
    if whole or repairs:
        raise WrongUsage("--whole and --repair are for tables; name one")
    findings: list[Finding] = []
    began = time.monotonic()
    with context.progress("examining", prints=True) as progress:
        for finding in examine(
            context.catalog_name,
            location=location,
            namespace=namespace,
            writes=not read_only,
            **context.catalog_properties,
        ):
            findings.append(finding)
            ended = time.monotonic()
            _show(context, finding, ended - began)
            began = ended
            progress.reach(finding.check, len(findings), None)
    _fail_where_failed(findings)


def _table(context: Context, name: str, whole: bool) -> None:
    """Examine a table; print each group of checks when it is over."""
    groups = examine_table(context.table(name), whole=whole)
    findings: list[Finding] = []
    over = ""
    while True:
        with context.progress(f"checking {name}") as progress:
            progress.reach(f"checks so far, {over} done" if over else "", len(findings), None)
            group = next(groups, None)
        if group is None:
            break
        over = group.name
        findings.extend(group.findings)
        _show_group(context, group)
    _fail_where_failed(findings)


def _repair(context: Context, name: str, repairs: Sequence[str], *, whole: bool, dry_run: bool) -> None:
    """Repair a table; print each repair, and the findings that are left."""
    chosen = None if ALL in repairs else [REPAIRS[each] for each in repairs]
    began = time.monotonic()
    with context.changing("doctor --repair", dry_run=dry_run):
        result = repair_table(context.table(name), chosen, whole=whole, dry_run=dry_run)
    for step in result.steps:
        _show_step(context, step)
    if result.left:
        _show_group(context, GroupOfChecks("left", result.left, time.monotonic() - began))
    elif not context.json:
        context.line("nothing else is wrong" if dry_run else "nothing is wrong now")
    _fail_where_failed(result.left)


def _show_step(context: Context, step: RepairStep) -> None:
    """A JSON object, or a line and below it the files."""
    if step.failed:
        did = "would fail" if step.dry_run else "failed"
    else:
        did = "would repair" if step.dry_run else "repaired"
    if context.json:
        row = {
            "step": did,
            "repair": _named(step.repair),
            "branch": step.branch,
            "rules": list(step.rules),
            "files": [without_userinfo(each) for each in step.locations],
            "failed": step.failed,
        }
        context.rows([row], ())
        return
    where = f"of branch {step.branch}" if step.branch else "of the table"
    context.line(f"{did:12}  {_named(step.repair)} {where}: {', '.join(step.rules)}; files: {len(step.locations)}", 14)
    if step.failed:
        context.line(f"{'':12}  {step.failed}")


def _fail_where_failed(findings: Sequence[Finding]) -> None:
    failed = [finding for finding in findings if finding.result is Result.FAILED]
    if failed:
        names = ", ".join(dict.fromkeys(finding.check for finding in failed))
        raise IcefieldError(f"{len(failed)} of {len(findings)} checks failed: {names}")


def _show_group(context: Context, group: GroupOfChecks) -> None:
    """Print a JSON object for each finding, or a line for the group and below it a line for each check's findings."""
    seconds = {name: round(each, 3) for name, each in group.check_seconds.items()}
    if context.json:
        rows = [
            {
                "group": group.name,
                "group_seconds": round(group.seconds, 3),
                "seconds": seconds.get(finding.check),
                "check": finding.check,
                "result": finding.result.value,
                "found": finding.found,
                "advice": finding.advice,
                "location": finding.location,
                "section": finding.section,
                "repair": None if finding.repair is None else _named(finding.repair),
                "no_repair": finding.no_repair,
            }
            for finding in group.findings
        ]
        context.rows(rows, ())
        return
    well = sum(finding.result is Result.OK for finding in group.findings)
    context.line(f"{group.name}: {well} of {len(group.findings)} ok, {group.seconds:.2f} s")
    for finding in group.findings:
        took = seconds.pop(finding.check, None)  # of several findings of one check, at the first
        spent = " " * 8 if took is None else f"{took:6.2f} s"
        context.line(f"  {finding.result.value:8}  {spent}  {finding.check:24}  {finding.found}".rstrip(), 14)
        if finding.result is Result.OK:
            continue
        repair = finding.no_repair if finding.repair is None else f"--repair {_named(finding.repair)}"
        shown = (("in", finding.location), ("->", finding.advice), ("repair:", repair), ("see", finding.section))
        for what, value in shown:
            if value:
                context.line(f"{'':12}{what} {without_userinfo(value)}", 14)


def _show(context: Context, finding: Finding, seconds: float) -> None:
    """Print one finding: a JSON object, or a line and the advice below it."""
    if context.json:
        row = {
            "check": finding.check,
            "result": finding.result.value,
            "found": finding.found,
            "advice": finding.advice,
            "seconds": round(seconds, 3),
        }
        context.rows([row], tuple(row))
        return
    context.line(f"{finding.result.value:8}  {seconds:6.2f} s  {finding.check:22}  {finding.found}".rstrip(), 12)
    if finding.advice:
        context.line(f"{'':8}  -> {finding.advice}", 13)
