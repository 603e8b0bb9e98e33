"""The records of the commands for maintenance; a module with a function ``run`` for each."""

from __future__ import annotations

from dataclasses import MISSING, replace

from icefield_cli import Argument, Command, Option

from icefield_maintenance.operation_options import options_of
from icefield_maintenance.options import (
    EraseOptions,
    ExpireOptions,
    RemoveOrphansOptions,
    RewriteDeletesOptions,
    RewriteManifestsOptions,
    RewriteOptions,
    TableStatsOptions,
)
from icefield_maintenance.tend.goals import PRESETS

_TABLE = Argument("table")
_REPAIRS = (
    "rewrite-metadata",
    "remove-statistics",
    "upgrade",
    "rewrite-manifests",
    "correct-entries",
    "rewrite-partitions",
    "remove-dangling-deletes",
    "forget-missing-files",
    "rewrite-data-files",
    "cluster-manifests",
    "expire-snapshots",
)
_AGE = " A time, or an age such as 7d."


def _options(record: type) -> tuple[Option, ...]:
    """The options of a command, made from the record of an operation."""
    found = []
    for each in options_of(record):
        about = each.description
        if not each.command:
            continue
        help = about.command_doc or about.doc
        if about.is_repeatable:
            help = help.removesuffix(".") + "; repeatable."
        if about.kind == "time-or-age":
            help += _AGE
        is_required = each.default is MISSING
        default = None if each.default in (MISSING, ()) or (about.kind == "flag" and not each.default) else each.default
        found.append(
            Option(
                each.name,
                help,
                about.kind,
                (each.command,),
                about.metavar,
                default,
                about.choices,
                is_required=is_required,
                is_repeatable=about.is_repeatable,
            )
        )
    return tuple(found)


def _rewrite_options() -> tuple[Option, ...]:
    """The options of ``rewrite-data-files``. The default of its strategy follows from the order."""
    strategy, *others = _options(RewriteOptions)
    return (replace(strategy, default=None, choices=("bin-pack", *strategy.choices[1:])), *others)


COMMANDS = (
    Command(
        "doctor",
        "Check that a catalog works, or a table: its files against the specification. Nothing changes without --repair."
        "\n\n"
        "For a catalog it checks plugins, configuration, credentials, permissions, clocks and the real behaviour of "
        "the storage.\nIt creates files and a table of its own below the folder .icefield-doctor of the warehouse, and "
        "deletes them at the end.\nThe exit status is 1 when a check failed.",
        "icefield_maintenance.commands.doctor:run",
        (
            Argument("table", is_required=False),
            Option("whole", "Of a table: read every data file, not a sample.", kind="flag"),
            Option(
                "repairs",
                "Of a table: put right what is wrong, by commits; behind the table's name. Repeatable. Without a NAME "
                "all but upgrade, rewrite-partitions, expire-snapshots and forget-missing-files.",
                choices=("all", *_REPAIRS),
                spellings=("--repair",),
                metavar="[NAME]",
                is_repeatable=True,
                without_value="all",
            ),
            Option("dry_run", "With --repair: show what would be done.", kind="flag"),
            Option("location", "Try this location instead of the warehouse.", metavar="URI"),
            Option(
                "namespace", "For a metastore: one that is there; default: one is made and dropped.", metavar="NAME"
            ),
            Option("read_only", "Change nothing: no file, no table.", kind="flag"),
        ),
        goes_with={"dry_run": ("repairs",)},
    ),
    Command(
        "diff",
        "Print the rows that differ between two versions of a table: snapshot ids, branches, tags or times.\n\n"
        "The rows have the column _change_type, and lead from OLD to NEW, by default the head of main.",
        "icefield_maintenance.commands.diff:run",
        (
            _TABLE,
            Argument("old"),
            Argument("new", is_required=False),
            Option("key", "Columns that tell rows apart, so that updates are found.", kind="names"),
        ),
        prints_rows=True,
    ),
    Command(
        "erase",
        "Erase rows from every branch, earlier version and file of a table, and prove that they are gone.\n\n"
        "All snapshots expire but the heads of branches and tags.",
        "icefield_maintenance.commands.erase:run",
        (_TABLE, *_options(EraseOptions), Option("yes", "Do not ask before rows and versions are erased.", "flag")),
    ),
    Command(
        "expire-snapshots",
        "Remove old snapshots, branches and tags, and delete the files that only they referred to.\n\n"
        "A run that was interrupted is finished by the next.",
        "icefield_maintenance.commands.expire_snapshots:run",
        (
            _TABLE,
            *_options(ExpireOptions),
            Option("files", "With --dry-run: list the files, instead of their numbers.", "flag"),
        ),
        goes_with={"files": ("dry_run",)},
    ),
    Command(
        "remove-orphans",
        "Find the files below a table that no version of it refers to; with --delete, delete them.\n\n"
        "Files of the last three days are left, since a writer that has not committed yet may have made them.",
        "icefield_maintenance.commands.remove_orphans:run",
        (_TABLE, *_options(RemoveOrphansOptions)),
        goes_with={"allow_recent": ("older_than",)},
    ),
    Command(
        "rewrite-data-files",
        "Write the rows of small, too large and much deleted data files into files of about the target size.\n\n"
        "Deleted rows are left out. With --partial-progress the command commits finished groups of files as it goes: "
        "an\ninterrupted run keeps these commits, and the next run continues with the remaining files.",
        "icefield_maintenance.commands.rewrite_data_files:run",
        (_TABLE, *_rewrite_options()),
        exclusive=(("sort_order", "zorder_columns"),),
        goes_with={"max_commits": ("partial_progress",), "max_failed_commits": ("partial_progress",)},
    ),
    Command(
        "rewrite-manifests",
        "Cluster the entries of a table's manifests by partition, so that scans with filters read fewer.",
        "icefield_maintenance.commands.rewrite_manifests:run",
        (_TABLE, *_options(RewriteManifestsOptions)),
    ),
    Command(
        "rewrite-deletes",
        "Write small position delete files into fewer; on request convert equality deletes and remove dangling deletes."
        "\n\n"
        "Each of the three is a commit of its own. In version 3 position deletes become deletion vectors. With "
        "--dry-run each\nsays which of the current delete files it would take, after the steps before it.",
        "icefield_maintenance.commands.rewrite_deletes:run",
        (
            _TABLE,
            Option("convert_equality", "First make position deletes of equality deletes.", "flag"),
            Option("remove_dangling", "Then remove the deletes that apply to no data file.", "flag"),
            *_options(RewriteDeletesOptions),
        ),
    ),
    Command(
        "compute-stats",
        "Compute statistics of a table, and of its partitions where it has any, and register them with a snapshot.",
        "icefield_maintenance.commands.compute_stats:run",
        (
            _TABLE,
            *_options(TableStatsOptions),
            Option("only", "Only those of the table, or of its partitions.", choices=("table", "partitions")),
        ),
    ),
    Command(
        "branches",
        "List the branches of all tables; or create, compare, merge or drop a branch over many tables in one step.\n\n"
        "Without NAME, or with NAME alone, it lists branches with their tables. Several tables change together, or "
        "none of\nthem: the catalog must change several tables in one step, as those of the types sql and rest do.",
        "icefield_maintenance.commands.branches:run",
        (
            Argument("name", is_required=False),
            Option("create", "Create the branch in this table; repeatable.", metavar="TABLE", is_repeatable=True),
            Option("diff", "Compare the branch with main, in each table.", "flag"),
            Option("merge", "Move main forward to the branch, in each table.", "flag"),
            Option("drop", "Drop the branch from each table.", "flag"),
            Option(
                "tables",
                "Look for branches in this table alone; repeatable.",
                spellings=("--table",),
                metavar="NAME",
                is_repeatable=True,
            ),
        ),
        exclusive=(("create", "diff", "merge", "drop"), ("create", "tables")),
        goes_with=dict.fromkeys(("create", "diff", "merge", "drop"), ("name",)),
    ),
    Command(
        "tend",
        "Keep the tables of the catalog at the goals of a policy, a file in TOML, and of their properties.\n\n"
        "The operations that gain most for each rewritten byte come first. Each has its reason. Without POLICY, the "
        "catalog's\nproperty tend.policy names the file. Without both, the goals are those of the tables' properties. "
        "The exit status\nis 1 if an operation failed or is overdue.",
        "icefield_maintenance.commands.tend:run",
        (
            Argument("policy", is_required=False),
            Option(
                "tables", "Only this table; repeatable.", spellings=("--table",), metavar="NAME", is_repeatable=True
            ),
            Option("every", "Repeat at this interval, until the process is stopped.", "span"),
            Option("dry_run", "Change nothing, and print the planned operations.", "flag"),
        ),
        exclusive=(("every", "dry_run"),),
    ),
    Command(
        "simulate-tend",
        "Replay a history of commits under several schedules, and print the costs of scans and rewrites.\n\n"
        "The history is that of a table, or generated for a kind of table. The schedules are no maintenance, a full "
        "compaction\neach night, each preset, and the goals of POLICY for the table.",
        "icefield_maintenance.commands.simulate_tend:run",
        (
            Argument("policy", is_required=False),
            Option("table", "Replay the commits of this table.", metavar="NAME"),
            Option("kind", "Generate commits: append-only, upsert-heavy or streaming.", choices=tuple(PRESETS)),
            Option("tables", "With --kind: the number of tables; default: 1.", "count", default=1),
            Option("days", "The simulated days; default: 30.", "count", default=30),
            Option("every", "The time from one run to the next; default: 1h.", "span", default=3_600_000),
            Option("scans", "The scans a day; default: those of the kind, or 24.", "count"),
            Option(
                "partitions",
                "The number of newest partitions that a scan reads; default: that of the kind, or 7.",
                "count",
            ),
        ),
        exclusive=(("table", "kind"), ("policy", "kind")),
        needs=("table", "kind"),
    ),
)

__all__ = ["COMMANDS"]
