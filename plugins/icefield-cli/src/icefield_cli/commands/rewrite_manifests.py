"""Cluster the entries of a table's manifests by partition, so that scans with filters read fewer."""

from __future__ import annotations

import argparse

from icefield_cli.context import Context

NAME = "rewrite-manifests"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.add_argument("table", help="namespace.table")
    parser.add_argument("--spec", type=int, metavar="ID", help="only manifests of this partition spec")
    parser.add_argument("--where", metavar="FILTER", help="only manifests that may hold such rows")
    parser.add_argument("--cluster-by", metavar="FIELDS", help="partition fields that come first, separated by commas")
    parser.add_argument("--branch", default="main", metavar="NAME", help="default: main")
    parser.add_argument("--dry-run", action="store_true", help="change nothing, and say what would be done")


def run(context: Context, given: argparse.Namespace) -> None:
    """Do it."""
    table = context.table(given.table)
    first = tuple(name.strip() for name in given.cluster_by.split(",")) if given.cluster_by else ()
    with context.changing(NAME, dry_run=given.dry_run):
        result = table.maintenance.rewrite_manifests(
            given.spec, given.where, cluster_by=first, dry_run=given.dry_run, branch=given.branch
        )
    done = "would rewrite" if given.dry_run else "rewrote"
    context.result(f"{done} {result.rewritten_manifests:,} manifests of {given.table}", NAME, result)
