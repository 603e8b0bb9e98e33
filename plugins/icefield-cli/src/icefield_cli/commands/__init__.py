"""One command a module: ``run``, made by ``icefield_cli.options.command``; the module's docstring is its help."""

COMMANDS = (
    "plugins",
    "doctor",
    "namespaces",
    "tables",
    "describe",
    "schema",
    "properties",
    "scan",
    "files",
    "partitions",
    "manifests",
    "snapshots",
    "history",
    "refs",
    "metadata",
    "create-namespace",
    "drop-namespace",
    "create-table",
    "drop-table",
    "rename-table",
    "register",
    "changes",
    "branch",
    "tag",
    "rollback",
    "cherry-pick",
    "expire-snapshots",
    "remove-orphans",
    "rewrite-data-files",
    "rewrite-manifests",
    "rewrite-deletes",
    "compute-stats",
)
"""The names of the commands, in the order of the help; the module of each is named as the command is."""

__all__ = ["COMMANDS"]
