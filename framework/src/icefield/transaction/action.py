"""Actions: functions from a base to updates and requirements, staged in a transaction."""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Self

from icefield.commit import WrittenFiles
from icefield.errors import IcefieldError, InvalidArgument, UncommittedWarning
from icefield.metadata import TableMetadata, TableRequirement, TableUpdate
from icefield.storage import FileIO


@dataclass(frozen=True, slots=True)
class ActionContext:
    """The context of an action: the table's name and file IO, and the account of written files.

    ``snapshots`` are the ids of the snapshots that the transaction's actions have made so far. ``marker`` is part of
    the names of the manifests and manifest lists that are written.
    """

    name: tuple[str, ...]
    io: FileIO
    written: WrittenFiles = field(default_factory=WrittenFiles)
    snapshots: set[int] = field(default_factory=set)
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """The result of an action for a base. Without an update there is nothing to change."""

    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()


class Action(ABC):
    """One change of a table, built up by its methods and then committed.

    ``commit`` hands the action to the transaction that made it, which applies it; leaving a ``with`` block without an
    exception does the same. A retry applies the action again to each new base that it finds. So ``apply`` must not
    depend on an earlier call, and may keep only results that hold for any base (a manifest that it wrote).
    """

    shapes: ClassVar[bool] = True
    """Whether later actions of a transaction must see the change when they are staged, not only when it commits.

    Such an action depends on no snapshot, and is pure: it reads and writes no file, unless an upgrade of the format
    demands files that an old table lacks.
    """

    def __init__(self, stage: Callable[[Action], None]) -> None:
        self._stage: Callable[[Action], None] | None = stage
        self._abandoned = False

    @abstractmethod
    def apply(self, base: TableMetadata, context: ActionContext) -> Changes:
        """The changes to make to ``base``. Raises ``ValidationFailed`` when they can no longer be made."""

    def commit(self) -> None:
        """Stage the change. Raises ``InvalidArgument`` on a second call."""
        if self._stage is None:
            raise InvalidArgument(f"this {type(self).__name__} was committed already; begin a new one")
        stage, self._stage = self._stage, None
        stage(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._abandoned = kind is not None
        if kind is None and self._stage is not None:
            self.commit()

    def _is_filled(self) -> bool:
        """Whether it holds changes, which are lost if it is dropped now."""
        return False

    def __del__(self) -> None:
        if getattr(self, "_stage", None) is None or self._abandoned:
            return
        try:
            is_filled = self._is_filled()
        except (IcefieldError, AttributeError):  # refused changes, or an object that was not made to its end
            return
        if is_filled:
            kind = type(self).__name__
            warn_of_lost(f"this {kind} was dropped with its changes: call commit(), or use it in a 'with' block")


def warn_of_lost(message: str) -> None:
    """Warn of changes that are lost. Python may be about to end, and must not be disturbed."""
    if not sys.is_finalizing():
        warnings.warn(message, UncommittedWarning, stacklevel=3)
