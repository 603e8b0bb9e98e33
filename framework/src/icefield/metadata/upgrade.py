"""Raising the format version: adding the fields that the new version requires to old entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from icefield.metadata.json_array import DAMAGE, JsonArray
from icefield.metadata.snapshots import Operation, Snapshot


def upgraded_snapshots(snapshots: JsonArray[Snapshot], manifest_lists: Mapping[int, str]) -> JsonArray[Snapshot]:
    """The snapshots of a v1 table in a table of a later version.

    They keep sequence number 0 and all other fields. The number is written out, with the summary and the manifest list
    that later versions require, for strict readers. ``manifest_lists`` gives a manifest list by snapshot id, for
    snapshots that name their manifests themselves.
    """
    return snapshots.mapped(lambda string: _upgraded(string, manifest_lists))


def _upgraded(string: bytes, manifest_lists: Mapping[int, str]) -> bytes:
    try:
        members: dict[str, Any] = msgspec.json.decode(string, type=dict[str, msgspec.Raw])
    except DAMAGE:  # reported when the element is accessed
        return string
    members.setdefault("sequence-number", 0)
    if "manifest-list" not in members:
        location = manifest_lists.get(int(bytes(members["snapshot-id"])))
        if location is not None:
            members.pop("manifests", None)
            members["manifest-list"] = location
    members.setdefault("summary", {"operation": Operation.OVERWRITE})
    return msgspec.json.encode(members)
