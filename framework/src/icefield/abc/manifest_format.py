"""The contract of a file format that holds manifests and manifest lists; a format of data files needs none of it.

The optional methods make planning and commits faster. A ``ManifestFormat`` also works without them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icefield.abc.file_format import FileFormat, FormatReader, ReadRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from icefield.abc.file_system import InputFile
    from icefield.schema import Schema


@dataclass(frozen=True, slots=True)
class ManifestReadRequest(ReadRequest):
    """A request to a reader of a manifest.

    ``map_keys``: for the map columns with those ids (the id of the map field), the integer keys that are wanted;
    entries of other keys may be left out.
    """

    map_keys: Mapping[int, frozenset[int]] = field(default_factory=dict)


class ManifestFormatReader(FormatReader):
    """An open file of a ``ManifestFormat``. ``read`` may be given a ``ManifestReadRequest``."""

    def prepare(self, limit: int) -> None:
        """Do some of the work of a ``read`` of the whole file ahead, such as inflating about ``limit`` bytes of it.

        A hint, given before ``read`` and perhaps by another thread; by default nothing is done. Prefer work that
        releases the GIL. Raises as ``read`` does.
        """


class ManifestFormat(FileFormat):
    """A file format that serves manifests and manifest lists as well as data files."""

    @abstractmethod
    def open_reader(self, source: InputFile, location: str, *, size: int | None = None) -> ManifestFormatReader:
        """Open a file: see ``FileFormat.open_reader``."""

    def read_together(
        self, readers: Sequence[ManifestFormatReader], request: ManifestReadRequest
    ) -> list[list[pa.RecordBatch]]:
        """The batches of several small files of one schema, one list for each file; ``request`` has no split.

        Positions begin at 0 in each file. By default the files are read one after another. Override this method for a
        format that decodes many rows at once faster than few.
        """
        return [list(reader.read(request)) for reader in readers]

    def append_blocks(
        self, old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]
    ) -> bytes | None:
        """A new file: the records of ``old``, byte for byte, then the records of ``batch``, with new metadata.

        None if ``old`` must be decoded and rewritten, for example for another schema or codec. None by default.
        """
        return None
