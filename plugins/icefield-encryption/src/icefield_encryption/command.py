"""Show or change the encryption of a table."""

from __future__ import annotations

from dataclasses import asdict

from icefield_cli import Context, WrongUsage

from icefield_encryption.table_keys import TableKeys

_ACTIONS = ("status", "rotate", "encrypt", "rewrite")


def run(context: Context, action: str, table: str, key_id: str | None) -> None:
    """Run the command."""
    if action not in _ACTIONS:
        raise WrongUsage(f"no action '{action}': there are {', '.join(_ACTIONS)}")
    if (key_id is not None) != (action == "encrypt"):
        raise WrongUsage("--key-id goes with the action encrypt, which needs it")
    keys = TableKeys(context.table(table))
    if action == "rotate":
        keys.rotate()
        context.say(f"{table} has a new key-encryption key", table=table)
        return
    if action == "status":
        context.record(asdict(keys.status()))
        return
    with context.progress("encrypting"):
        status = keys.rewrite() if key_id is None else keys.encrypt(key_id)
    context.record(asdict(status))
