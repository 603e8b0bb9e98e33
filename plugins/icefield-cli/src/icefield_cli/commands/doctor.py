"""Check that a catalog works, or a table: its files against the specification, without changing anything.

Of a catalog: plugins, configuration, credentials, rights, clocks, and what the storage really does. Everything is
tried on the warehouse, with files and a table of the command's own below the folder .icefield-doctor, which are
deleted at the end. The exit status is 1 when a check failed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import click
from icefield import IcefieldError
from icefield.errors import InvalidArgument
from icefield.health import Finding, GroupOfChecks, Result, examine, examine_table
from icefield.toolkit import without_userinfo

from icefield_cli.context import Context
from icefield_cli.options import command, flag


@command("doctor", __doc__)
@click.argument("table", metavar="[TABLE]", required=False)
@flag("--whole", "Of a table: read every data file, not a sample.")
@click.option("--location", metavar="URI", help="Try this location instead of the warehouse.")
@click.option(
    "--namespace", metavar="NAME", help="For a metastore: one that is there; default: one is made and dropped."
)
@flag("--read-only", "Change nothing: no file, no table.")
def run(
    context: Context, table: str | None, whole: bool, location: str | None, namespace: str | None, read_only: bool
) -> None:
    """Run the command."""
    if table is not None:
        if location or namespace or read_only:
            raise InvalidArgument(
                "--location, --namespace and --read-only are for catalogs; leave them out for a table"
            )
        _table(context, table, whole)
        return
    if whole:
        raise InvalidArgument("--whole is for tables; name one")
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


def _fail_where_failed(findings: Sequence[Finding]) -> None:
    failed = [finding for finding in findings if finding.result is Result.FAILED]
    if failed:
        names = ", ".join(dict.fromkeys(finding.check for finding in failed))
        raise IcefieldError(f"{len(failed)} of {len(findings)} checks failed: {names}")


def _show_group(context: Context, group: GroupOfChecks) -> None:
    """A JSON object a finding, or a line for the group and below it what was found."""
    if context.json:
        rows = [
            {
                "group": group.name,
                "seconds": round(group.seconds, 3),
                "check": finding.check,
                "result": finding.result.value,
                "found": finding.found,
                "advice": finding.advice,
                "location": finding.location,
                "section": finding.section,
                "repair": None if finding.repair is None else finding.repair.value,
            }
            for finding in group.findings
        ]
        context.rows(rows, ())
        return
    well = sum(finding.result is Result.OK for finding in group.findings)
    context.line(f"{group.name:9}  {well} of {len(group.findings)} ok  {group.seconds:.2f} s")
    for finding in group.findings:
        if finding.result is Result.OK:
            continue
        context.line(f"  {finding.result.value:8}  {finding.check:22}  {finding.found}".rstrip())
        for what, value in (("in", finding.location), ("->", finding.advice), ("see", finding.section)):
            if value:
                context.line(f"{'':12}{what} {without_userinfo(value)}")


def _show(context: Context, finding: Finding, seconds: float) -> None:
    """One finding: a JSON object, or a line and, below it, what to do."""
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
    context.line(f"{finding.result.value:8}  {seconds:6.2f} s  {finding.check:22}  {finding.found}".rstrip())
    if finding.advice:
        context.line(f"{'':8}  -> {finding.advice}")
