"""File systems whose streams are uploads that the store holds open, one defect each, and a right one."""

from __future__ import annotations

import io
from types import TracebackType
from typing import Any, ClassVar
from uuid import uuid4

from icefield.abc import OutputStream, PutMode

from mutants import Mutant, of
from mutants.file_systems.failing import Remote
from mutants.file_systems.silence import OverASocket


class Uploads(Remote):
    """Begins an upload with each stream, and ends it in ``close``, in ``abort`` and when a step fails."""

    held: ClassVar[dict[str, str]] = {}
    """The uploads that the store holds open: their locations by their ids."""

    def open_output(self, location: str) -> OutputStream:
        return _Upload(self, location)

    def aborted(self, upload: str) -> None:
        self.held.pop(upload, None)

    def interrupted(self, upload: str) -> None:
        self.held.pop(upload, None)

    def failed_in_close(self, upload: str) -> None:
        self.held.pop(upload, None)


class _Upload(OutputStream):
    def __init__(self, owner: Uploads, location: str) -> None:
        self.owner, self.location, self.upload = owner, location, uuid4().hex
        self.kept = io.BytesIO()
        owner.held[self.upload] = location

    def write(self, data: Any, /) -> int:
        return self.kept.write(data)

    def tell(self) -> int:
        return self.kept.tell()

    def close(self) -> None:
        if self.closed:
            return
        data = self.kept.getvalue()
        self.kept.close()
        try:
            self.owner.put(self.location, data, PutMode.OVERWRITE)
        except BaseException:
            self.owner.failed_in_close(self.upload)
            raise
        self.owner.held.pop(self.upload)

    def abort(self) -> None:
        if not self.closed:
            self.kept.close()
            self.owner.aborted(self.upload)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, Exception):
            super().__exit__(kind, error, trace)
        elif not self.closed:
            self.kept.close()
            self.owner.interrupted(self.upload)

    @property
    def closed(self) -> bool:
        return self.kept.closed


class AbortsNoUpload(Uploads):
    """Forgets the bytes of an aborted stream, and leaves its upload at the store."""

    def aborted(self, upload: str) -> None:
        pass


class LeavesInterruptedUploads(Uploads):
    """Ends the upload of a writer that fails, and not of one that is interrupted."""

    def interrupted(self, upload: str) -> None:
        pass


class SentUploads(OverASocket, Uploads):
    """Publishes an upload over a socket."""


class LeavesFailedUploads(SentUploads):
    """Reports that ``close`` failed, and leaves the upload at the store."""

    def failed_in_close(self, upload: str) -> None:
        pass


_OPEN = "test_no_write_stays_open_at_the_store"

MUTANTS: list[Mutant] = of(
    {
        AbortsNoUpload: (_OPEN, "after a stream that was aborted"),
        LeavesInterruptedUploads: (_OPEN, "after a stream that was interrupted"),
        LeavesFailedUploads: (_OPEN, "after a lost reply at request 1 of"),
    }
)
