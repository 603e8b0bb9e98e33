"""Check that a catalog works, or a table: its files against the specification, without changing anything.

Of a catalog: plugins, configuration, credentials, rights, clocks, and what the storage really does. Everything is
tried on the warehouse, with files and a table of the command's own below the folder .icefield-doctor, which are
deleted at the end. The exit status is 1 when a check failed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from icefield import IcefieldError
from icefield.errors import InvalidArgument
from icefield.health import Finding, GroupOfChecks, Result, examine, examine_table
from icefield.toolkit import without_userinfo

from icefield_cli.context import Context

NAME = "doctor"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", nargs="?", help="namespace.table, or a metadata file; without it, the catalog")
    parser.add_argument("--whole", action="store_true", help="of a table: read every data file, not a sample")
    parser.add_argument("--location", metavar="URI", help="try this location instead of the warehouse")
    parser.add_argument(
        "--namespace", metavar="NAME", help="for a metastore: one that is there; default: one is made and dropped"
    )
    parser.add_argument("--read-only", action="store_true", help="change nothing: no file, no table")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    if given.table is not None:
        _table(context, given)
        return
    if given.whole:
        raise InvalidArgument("--whole is for tables; name one")
    findings: list[Finding] = []
    with context.progress("examining", prints=True):
        for finding in examine(
            context.catalog_name,
            location=given.location,
            namespace=given.namespace,
            writes=not given.read_only,
            **context.catalog_properties,
        ):
            findings.append(finding)
            _show(context, finding)
    _fail_where_failed(findings)


def _table(context: Context, given: argparse.Namespace) -> None:
    """Examine a table; print each group of checks when it is over."""
    if given.location or given.namespace or given.read_only:
        raise InvalidArgument("--location, --namespace and --read-only are for catalogs; leave them out for a table")
    groups = examine_table(context.table(given.table), whole=given.whole)
    findings: list[Finding] = []
    while True:
        with context.progress(f"checking {given.table}"):
            group = next(groups, None)
        if group is None:
            break
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


def _show(context: Context, finding: Finding) -> None:
    """One finding: a JSON object, or a line and, below it, what to do."""
    if context.json:
        row = {
            "check": finding.check,
            "result": finding.result.value,
            "found": finding.found,
            "advice": finding.advice,
        }
        context.rows([row], tuple(row))
        return
    context.line(f"{finding.result.value:8}  {finding.check:22}  {finding.found}".rstrip())
    if finding.advice:
        context.line(f"{'':8}  -> {finding.advice}")
