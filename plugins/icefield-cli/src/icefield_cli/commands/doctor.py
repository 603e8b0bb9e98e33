"""Check that a catalog works: plugins, configuration, credentials, rights, clocks, and what the storage really does.

Everything is tried on the warehouse, with files and a table of the command's own below the folder .icefield-doctor,
which are deleted at the end. The exit status is 1 when a check failed.
"""

from __future__ import annotations

import argparse

from icefield import IcefieldError
from icefield.health import Finding, Result, examine

from icefield_cli.context import Context

NAME = "doctor"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("--location", metavar="URI", help="try this location instead of the warehouse")
    parser.add_argument(
        "--namespace", metavar="NAME", help="for a metastore: one that is there; default: one is made and dropped"
    )
    parser.add_argument("--read-only", action="store_true", help="change nothing: no file, no table")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
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
    failed = [finding.check for finding in findings if finding.result is Result.FAILED]
    if failed:
        raise IcefieldError(f"{len(failed)} of {len(findings)} checks failed: {', '.join(failed)}")


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
