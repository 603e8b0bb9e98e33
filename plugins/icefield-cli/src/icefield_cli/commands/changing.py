"""Records of the commands that change catalogs and tables."""

from __future__ import annotations

from itertools import product

from icefield_cli.hookspecs import Argument, Command, Option

TABLE = Argument("table")
_PROPERTIES = Option(
    "properties", "A property of it; repeatable.", kind="pair", spellings=("--set",), is_repeatable=True
)
_TARGET = (
    Option("snapshot", "The snapshot; default: the current one.", kind="id"),
    Option("source", "The snapshot that this branch or tag names.", spellings=("--from",), metavar="REF"),
)
_ONE_TARGET = ("snapshot", "source")
_AGES = ("max_ref_age", "max_snapshot_age", "min_snapshots")

CHANGING = (
    Command(
        "create-namespace",
        "Create a namespace.",
        "icefield_cli.commands.create_namespace:run",
        (Argument("namespace"), _PROPERTIES),
    ),
    Command(
        "drop-namespace",
        "Drop a namespace that is empty.",
        "icefield_cli.commands.drop_namespace:run",
        (Argument("namespace"),),
    ),
    Command(
        "create-table",
        "Create a table without rows.\n\n"
        'Example: icefield create-table db.events --column "id long required" --column "ts timestamptz" '
        '--partition "day(ts)"',
        "icefield_cli.commands.create_table:run",
        (
            TABLE,
            Option(
                "columns",
                "A column, such as 'price decimal(9,2)'; repeatable.",
                kind="icefield_cli.commands.create_table:column",
                spellings=("--column",),
                metavar="'NAME TYPE [required]'",
                is_repeatable=True,
                is_required=True,
            ),
            Option(
                "partition",
                "Such as 'day(ts)', 'bucket[16](id)', 'kind'; repeatable.",
                metavar="FIELD",
                is_repeatable=True,
            ),
            Option("sort", "Such as 'ts desc nulls last'; repeatable.", metavar="FIELD", is_repeatable=True),
            _PROPERTIES,
            Option("location", "Where it is; default: below the warehouse.", metavar="URI"),
        ),
    ),
    Command(
        "drop-table",
        "Drop a table; its files stay, unless they are to be deleted too.",
        "icefield_cli.commands.drop_table:run",
        (
            TABLE,
            Option("purge", "Delete its data and its metadata too, which nothing brings back.", kind="flag"),
            Option("yes", "Do not ask before files are deleted.", kind="flag"),
        ),
    ),
    Command(
        "rename-table",
        "Rename a table; its files stay where they are.",
        "icefield_cli.commands.rename_table:run",
        (TABLE, Argument("name")),
    ),
    Command(
        "register",
        "Register a table by its existing metadata file.",
        "icefield_cli.commands.register:run",
        (TABLE, Argument("metadata_location")),
    ),
    Command(
        "branch",
        "Create a branch of a table; or move, rename or delete one, or change how long expiry keeps it.",
        "icefield_cli.commands.branch:run",
        (
            TABLE,
            Argument("name"),
            *_TARGET,
            Option("replace", "Move the branch, wherever it was.", kind="flag"),
            Option("fast_forward", "Move the branch forward to this branch or tag.", metavar="REF"),
            Option("rename", "Give it this name.", metavar="NEW"),
            Option("delete", "Delete the branch.", kind="flag"),
            Option("retain", "Change only how long a branch that is there is kept.", kind="flag"),
            Option("max_ref_age", "How long the branch is kept, such as 7d.", kind="span"),
            Option("max_snapshot_age", "How long its snapshots are kept.", kind="span"),
            Option("min_snapshots", "How many are kept whatever their age.", kind="count"),
        ),
        exclusive=(
            _ONE_TARGET,
            ("replace", "fast_forward", "rename", "delete", "retain"),
            *product(("fast_forward", "rename", "delete", "retain"), _ONE_TARGET),
            *product(("rename", "delete"), _AGES),
        ),
        goes_with={"retain": _AGES},
    ),
    Command(
        "tag",
        "Create a tag, which names a snapshot of a table; or move it, delete it, or change how long expiry keeps it.",
        "icefield_cli.commands.tag:run",
        (
            TABLE,
            Argument("name"),
            *_TARGET,
            Option("replace", "Move the tag, wherever it was.", kind="flag"),
            Option("delete", "Delete the tag.", kind="flag"),
            Option("retain", "Change only how long a tag that is there is kept.", kind="flag"),
            Option("max_ref_age", "How long the tag is kept, such as 90d.", kind="span"),
        ),
        exclusive=(
            _ONE_TARGET,
            ("replace", "delete", "retain"),
            *product(("delete", "retain"), _ONE_TARGET),
            ("delete", "max_ref_age"),
        ),
        goes_with={"retain": ("max_ref_age",)},
    ),
    Command(
        "rollback",
        "Make an earlier snapshot of a table the current one. No file is deleted, and the snapshots in between stay.",
        "icefield_cli.commands.rollback:run",
        (
            TABLE,
            Option("snapshot", "An ancestor of the current snapshot.", kind="id"),
            Option("before", "The latest from before a time, or an age.", kind="time-or-age"),
            Option("ref", "What a branch or tag names, an ancestor or not.", metavar="NAME"),
            Option("any", "With --snapshot: one that is no ancestor too.", kind="flag"),
        ),
        exclusive=(("snapshot", "before", "ref"),),
        needs=("snapshot", "before", "ref"),
        goes_with={"any": ("snapshot",)},
    ),
    Command(
        "cherry-pick",
        "Apply the change of a snapshot to main: of a staged snapshot, or of a snapshot of another branch.",
        "icefield_cli.commands.cherry_pick:run",
        (
            TABLE,
            Option("snapshot", "The snapshot.", kind="id"),
            Option("wap_id", "The one that was staged under this wap.id.", metavar="ID"),
        ),
        exclusive=(("snapshot", "wap_id"),),
        needs=("snapshot", "wap_id"),
    ),
)
