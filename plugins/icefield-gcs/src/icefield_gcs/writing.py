"""Objects written in parts: the store's resumable uploads, which show nothing before they are done."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

from fsspec.asyn import sync
from icefield.toolkit import PartedOutput, persist

from icefield_gcs.client import GcsClient, is_transient, status_of

_ARRIVED = re.compile(r"bytes=0-(\d+)")


class GcsOutput(PartedOutput):
    """A stream to a new object."""

    def __init__(
        self,
        client: GcsClient,
        location: str,
        bucket: str,
        key: str,
        translated: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        super().__init__(location, client.settings.write_part)
        self._client, self._bucket, self._key, self._translated = client, bucket, key, translated
        self._upload = ""

    def put_whole(self, data: bytes) -> None:
        with self._translated(self.location):
            sync(self._client.loop, self._client.put_object, self._bucket, self._key, data, create=False)

    def put_part(self, number: int, data: bytes) -> None:
        with self._translated(self.location):
            sync(self._client.loop, self._send, number * self.part_size, data, False)

    def finish(self, number: int, data: bytes) -> None:
        with self._translated(self.location):
            sync(self._client.loop, self._send, number * self.part_size, data, True)

    def cancel(self) -> None:
        upload, self._upload = self._upload, ""
        if upload:
            with self._translated(self.location):
                sync(self._client.loop, self._cancel, upload)

    async def _cancel(self, upload: str) -> None:
        try:
            await self._client.ask("DELETE", upload)
        except Exception as error:
            if status_of(error) not in (404, 410):  # it is done, or gone
                raise

    async def _send(self, start: int, data: bytes, last: bool) -> None:
        """Send a part. After an unanswered request, ask for the received size and send only the rest."""
        if not self._upload:
            self._upload = await self._client.start_upload(self._bucket, self._key)
        end = start + len(data)
        arrived = start
        in_doubt = False

        async def attempt() -> None:
            nonlocal arrived, in_doubt
            if in_doubt:
                arrived = await self._arrived(end, last)
                if arrived < start:
                    raise OSError("the store has lost what had arrived")
            in_doubt = True
            while arrived < end:
                before = arrived
                arrived = await self._send_rest(arrived, data[arrived - start :], end if last else None)
                if arrived <= before:
                    raise ConnectionError("nothing of a part has arrived")
            in_doubt = False

        await persist(self._client.settings.limits, attempt, is_transient)

    async def _send_rest(self, start: int, data: bytes, size: int | None) -> int:
        """One request with bytes from ``start`` on; up to where all has arrived then."""
        end = start + len(data)
        headers = {"Content-Range": f"bytes {start}-{end - 1}/{'*' if size is None else size}"}
        status, answered, contents = await self._client.send(self._upload, headers, data)
        if size is None:
            return _end_of(answered)
        if status == 308:
            return _end_of(answered)
        if int(json.loads(contents)["size"]) != size:
            raise OSError("the store has put together another number of bytes than were sent")
        return end

    async def _arrived(self, end: int, last: bool) -> int:
        """Up to where the upload has arrived."""
        headers = {"Content-Range": f"bytes */{end if last else '*'}"}
        status, answered, _ = await self._client.send(self._upload, headers, b"")
        if status != 308:
            return end
        # If the whole upload has arrived but is not finished, the store needs its last byte again.
        return min(_end_of(answered), end - 1) if last else _end_of(answered)


def _end_of(headers: object) -> int:
    found = _ARRIVED.match(headers.get("Range", ""))  # type: ignore[attr-defined]
    return int(found[1]) + 1 if found else 0
