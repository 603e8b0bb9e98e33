"""The commands for catalogs and tables: their records, and a module with a function ``run`` for each."""

from icefield_cli.commands.changing import CHANGING
from icefield_cli.commands.reading import READING

COMMANDS = (*READING, *CHANGING)

__all__ = ["COMMANDS"]
