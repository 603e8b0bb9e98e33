"""Raising the format version: what old entries lack that the new version requires."""

from __future__ import annotations

from typing import Any

import msgspec

from icefield.metadata.json_array import DAMAGE, JsonArray
from icefield.snapshots import Operation, Snapshot


def upgraded_snapshots(snapshots: JsonArray[Snapshot]) -> JsonArray[Snapshot]:
    """The snapshots of a v1 table in a table of a later version.

    They keep sequence number 0, and what else they hold. It is written out, with the summary that later versions
    require, for readers that insist on it.
    """
    return snapshots.mapped(_upgraded)


def _upgraded(text: bytes) -> bytes:
    try:
        members: dict[str, Any] = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except DAMAGE:  # looked at when it is asked for
        return text
    members.setdefault("sequence-number", 0)
    members.setdefault("summary", {"operation": Operation.OVERWRITE})
    return msgspec.json.encode(members)
