"""Branches and tags: names for snapshots. See "Snapshot References" of the table specification."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from icefield.base.structs import decodable
from icefield.errors import InvalidArgument
from icefield.metadata.entries import Long

MAIN_BRANCH: Final = "main"
"""The branch that is the table: its snapshot is the current one."""


class RefType(StrEnum):
    """A branch moves with commits; a tag stays."""

    BRANCH = "branch"
    TAG = "tag"

    @classmethod
    def _missing_(cls, value: object) -> RefType | None:
        # Some writers spell the type in upper case.
        return next((kind for kind in cls if isinstance(value, str) and value.lower() == kind.value), None)


@decodable
class SnapshotRef(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True, repr_omit_defaults=True):
    """A branch or tag: the snapshot it names and how long it is kept.

    ``min_snapshots_to_keep`` and ``max_snapshot_age_ms`` hold for branches only; ``max_ref_age_ms`` is the age at
    which the ref itself may be dropped. Ages are in milliseconds and positive; None means the table's default.
    Raises ``InvalidArgument``.
    """

    snapshot_id: Long
    type: RefType
    min_snapshots_to_keep: Long | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.type, RefType):
            try:
                msgspec.structs.force_setattr(self, "type", RefType(self.type))
            except ValueError:
                message = f"a snapshot reference is a 'branch' or a 'tag', not {self.type!r}"
                raise InvalidArgument(message) from None
        for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**63:
                raise InvalidArgument(f"{name} of a branch or tag must be a positive integer, not {value!r}")
            if self.is_tag and name != "max_ref_age_ms":
                raise InvalidArgument(f"{name} can be set on a branch only, not on a tag")

    @property
    def is_branch(self) -> bool:
        """Whether commits may move it."""
        return self.type is RefType.BRANCH

    @property
    def is_tag(self) -> bool:
        """Whether it stays where it was put."""
        return self.type is RefType.TAG


def branch(snapshot_id: int) -> SnapshotRef:
    """A branch at a snapshot, with the table's defaults."""
    return SnapshotRef(snapshot_id, RefType.BRANCH)


def tag(snapshot_id: int) -> SnapshotRef:
    """A tag on a snapshot, with the table's defaults."""
    return SnapshotRef(snapshot_id, RefType.TAG)
