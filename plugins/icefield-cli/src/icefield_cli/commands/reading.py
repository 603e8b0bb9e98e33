"""Records of the commands that show catalogs and tables."""

from __future__ import annotations

from icefield_cli.hookspecs import Argument, Command, Option

TABLE = Argument("table")
_ROWS = (
    Option("where", "A filter, such as \"kind in ('a', 'b')\".", metavar="FILTER"),
    Option("columns", "The columns, separated by commas.", kind="names"),
    Option("limit", "The most rows; default: 20.", kind="count"),
    Option("all", "Every row.", kind="flag"),
    Option("count", "Print the number of rows only.", kind="flag"),
)
_ONE_LIMIT = ("limit", "all", "count")
_SNAPSHOT = Option("snapshot", "An earlier snapshot by its id.", kind="id")
_VERSION = (
    _SNAPSHOT,
    Option("ref", "A branch or tag.", metavar="NAME"),
    Option("as_of", "As it was at a time, such as 2024-01-31T12:00:00+00:00.", kind="time"),
)
_ONE_VERSION = ("snapshot", "ref", "as_of")

READING = (
    Command(
        "plugins",
        "List the plugins, the extensions that each provides, and the errors of failed plugins.",
        "icefield_cli.commands.plugins:run",
        (),
    ),
    Command(
        "namespaces",
        "List the namespaces of a catalog.",
        "icefield_cli.commands.namespaces:run",
        (Argument("parent", is_required=False),),
    ),
    Command(
        "tables",
        "List the tables of a namespace, or of all of them.",
        "icefield_cli.commands.tables:run",
        (Argument("namespace", is_required=False),),
    ),
    Command(
        "describe",
        "Describe a table: location, schema, partitioning, properties, current snapshot.",
        "icefield_cli.commands.describe:run",
        (TABLE,),
    ),
    Command(
        "schema",
        "Show the columns of a table.",
        "icefield_cli.commands.schema:run",
        (TABLE, Option("schema_id", "An earlier schema by its id.", kind="id", spellings=("--id",))),
    ),
    Command(
        "properties",
        "Show, set or remove properties of a table.",
        "icefield_cli.commands.properties:run",
        (
            TABLE,
            Option("changes", "Set a property; repeatable.", kind="pair", spellings=("--set",), is_repeatable=True),
            Option("remove", "Remove a property; repeatable.", metavar="KEY", is_repeatable=True),
        ),
    ),
    Command(
        "scan",
        "Print rows of a table.",
        "icefield_cli.commands.scan:run",
        (TABLE, *_ROWS, *_VERSION),
        exclusive=(_ONE_LIMIT, _ONE_VERSION),
        prints_rows=True,
    ),
    Command(
        "export",
        "Write rows of a table to a file: .csv, .parquet or .jsonl.\n\n"
        "The file may be in any storage that the catalog's properties give access to.",
        "icefield_cli.commands.export:run",
        (
            TABLE,
            Argument("file"),
            Option("where", "A filter, such as \"kind in ('a', 'b')\"; default: every row.", metavar="FILTER"),
            Option("columns", "The columns, separated by commas.", kind="names"),
            Option("limit", "The most rows.", kind="count"),
            *_VERSION,
        ),
        exclusive=(_ONE_VERSION,),
    ),
    Command(
        "files",
        "List the data files of a table: all of them, or only the files that a filter may match.",
        "icefield_cli.commands.files:run",
        (TABLE, Option("where", "A filter, such as \"ts >= '2024-01-01'\".", metavar="FILTER"), *_VERSION),
        exclusive=(_ONE_VERSION,),
    ),
    Command(
        "partitions",
        "List the partitions of a table, with the rows, files and size of each.",
        "icefield_cli.commands.partitions:run",
        (
            TABLE,
            Option("where", "Only files that may match, such as \"ts >= '2024-01-01'\".", metavar="FILTER"),
            _SNAPSHOT,
        ),
    ),
    Command("manifests", "List the manifests of a table.", "icefield_cli.commands.manifests:run", (TABLE, _SNAPSHOT)),
    Command("snapshots", "List the snapshots of a table.", "icefield_cli.commands.snapshots:run", (TABLE,)),
    Command("history", "List which snapshot was current when.", "icefield_cli.commands.history:run", (TABLE,)),
    Command("refs", "List the branches and tags of a table.", "icefield_cli.commands.refs:run", (TABLE,)),
    Command(
        "metadata",
        "Print the metadata of a table as it is stored: its JSON, indented.",
        "icefield_cli.commands.metadata:run",
        (TABLE,),
    ),
    Command(
        "changes",
        "Print the rows that the snapshots of a range inserted, deleted and updated, in their order.",
        "icefield_cli.commands.changes:run",
        (
            TABLE,
            Option("after", "Begin after this snapshot.", kind="id"),
            Option("first", "Begin with this snapshot.", kind="id", spellings=("--from",)),
            Option("since", "Begin after a time, or an age such as 1d.", kind="time-or-age"),
            Option("to", "End with this snapshot; default: the head.", kind="id"),
            Option("until", "End at a time, or an age such as 1h.", kind="time-or-age"),
            Option("ref", "A branch or tag; default: main.", metavar="NAME"),
            Option("net", "Leave out changes that later ones undid.", kind="flag"),
            Option("key", "Columns that tell rows apart, so that updates are found.", kind="names"),
            *_ROWS,
        ),
        exclusive=(("after", "first", "since"), ("to", "until"), _ONE_LIMIT),
        prints_rows=True,
    ),
)
