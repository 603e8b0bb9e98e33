"""File systems whose streams are uploads that the store holds open, one defect each, and a right one."""

from __future__ import annotations

import io
from typing import Any, ClassVar
from uuid import uuid4

from icefield.abc import OutputStream, PutMode
from icefield.builtin.memory import MemoryFileSystem

from mutants import Mutant, of


class Uploads(MemoryFileSystem):
    """Begins an upload with each stream, and ends it in ``close``, in ``abort`` and as garbage."""

    held: ClassVar[dict[str, str]] = {}
    """The uploads that the store holds open: their locations by their ids."""

    def open_output(self, location: str) -> OutputStream:
        return _Upload(self, location)

    def aborted(self, upload: str) -> None:
        self.held.pop(upload, None)

    def forgotten(self, upload: str) -> None:
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
        if not self.closed:
            self.owner.put(self.location, self.kept.getvalue(), PutMode.OVERWRITE)
            self.kept.close()
            self.owner.held.pop(self.upload)

    def abort(self) -> None:
        if not self.closed:
            self.kept.close()
            self.owner.aborted(self.upload)

    def __del__(self) -> None:
        if not self.closed:
            self.kept.close()
            self.owner.forgotten(self.upload)

    @property
    def closed(self) -> bool:
        return self.kept.closed


class AbortsNoUpload(Uploads):
    """Forgets the bytes of an aborted stream, and leaves its upload at the store."""

    def aborted(self, upload: str) -> None:
        pass


class LeavesForgottenUploads(Uploads):
    """Ends the upload of a stream that nobody closed only where the stream says so."""

    def forgotten(self, upload: str) -> None:
        pass


_OPEN = "test_no_write_stays_open_at_the_store"

MUTANTS: list[Mutant] = of(
    {
        AbortsNoUpload: (_OPEN, "after a stream that was aborted"),
        LeavesForgottenUploads: (_OPEN, "after a stream that was forgotten"),
    }
)
