"""One command a module: NAME, ``arguments(parser)`` and ``run(context, given)``; the docstring is its help."""

from icefield_cli.commands import (
    describe,
    doctor,
    files,
    history,
    namespaces,
    plugins,
    properties,
    register,
    scan,
    schema,
    snapshots,
    tables,
)

COMMANDS = (
    plugins,
    doctor,
    namespaces,
    tables,
    describe,
    schema,
    snapshots,
    history,
    files,
    scan,
    properties,
    register,
)

__all__ = ["COMMANDS"]
