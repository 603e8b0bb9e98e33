"""Opening and creating the files of encrypted tables: how a file of a table gets its key.

Key metadata travels with the description of each file, in the encrypted file above it. Spec: "Encryption".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from icefield.abc import FileKey, InputFile, KeyService, OutputStream, TableEncryption
from icefield.errors import InvalidArgument, KeyUnavailable, UnsupportedFeature
from icefield.metadata import TableMetadata
from icefield.metadata.properties import ENCRYPTION_DATA_KEY_LENGTH, ENCRYPTION_KEY_ID, get_int
from icefield.plugins import Plugins

KMS_TYPE: Final = "encryption.kms-type"
KMS_IMPL: Final = "encryption.kms-impl"
"""Properties of a catalog: the key service by its name, or by the name of the class of Java's client for it."""

STANDARD: Final = b"\1"
"""The first byte of the standard key metadata. Impala sets other metadata on plain files."""
_KEY_LENGTHS: Final = (16, 24, 32)


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write: its stream, and its key if it is encrypted. ``native``: its format encrypts it."""

    sink: OutputStream
    key: FileKey | None = None
    native: bool = False
    encryption: TableEncryption | None = None

    def stored(self, size: int) -> tuple[int, bytes | None]:
        """The bytes of the stored file and its key metadata, once ``size`` bytes were written and the stream closed."""
        if self.key is None or self.encryption is None:
            return size, None
        size = size if self.native else self.encryption.stored_size(size)
        return size, self.encryption.key_metadata(replace(self.key, length=size))


def key_length(metadata: TableMetadata) -> int | None:
    """The length of the keys of new files, in bytes; None for a table that is not encrypted.

    0 for a table with encrypted files that can have no more of them: new files would be plain, and are refused.
    """
    if ENCRYPTION_KEY_ID.name in metadata.properties:
        length = get_int(metadata.properties, ENCRYPTION_DATA_KEY_LENGTH)
        return length if metadata.format_version >= 3 and length in _KEY_LENGTHS else 0
    return 0 if metadata.is_encrypted else None


def is_encrypted(key_metadata: bytes | None) -> bool:
    """Whether key metadata is the standard one, so that its file must be encrypted."""
    return key_metadata is not None and key_metadata[:1] == STANDARD


def opened(
    encryption: Callable[[], TableEncryption], source: InputFile, location: str, key_metadata: bytes, native: bool
) -> InputFile:
    """A file with its key: for a format that decrypts it, or as a stream of plain bytes. Closes a refused file."""
    try:
        with_keys = encryption()
        key = with_keys.key_of(key_metadata, location)
        if not native:
            return with_keys.decrypting(source, key, location)
        source.key = key
        return source
    except BaseException:
        source.close()
        raise


def check_key_length(length: int | None) -> None:
    """Raise ``UnsupportedFeature`` for a table with encrypted files whose new files would be plain."""
    if length == 0:
        raise UnsupportedFeature(
            "the table is encrypted, and files that are written now would be plain: format version 3 is needed, the "
            f"property {ENCRYPTION_KEY_ID.name}, and 16, 24 or 32 as {ENCRYPTION_DATA_KEY_LENGTH.name}"
        )


def created(encryption: TableEncryption, sink: OutputStream, length: int, native: bool) -> NewFile:
    """A file with a new key of ``length`` bytes. Raises as ``check_key_length``."""
    check_key_length(length)
    key = encryption.new_key(length)
    if native:
        sink.key = key
        return NewFile(sink, key, True, encryption)
    return NewFile(encryption.encrypting(sink, key), key, False, encryption)


def key_service(plugins: Plugins, properties: Mapping[str, str]) -> KeyService:
    """The key service of a catalog. Raises ``KeyUnavailable`` without one."""
    names = [properties[name] for name in (KMS_TYPE, KMS_IMPL) if properties.get(name)]
    if not names:
        raise KeyUnavailable(
            f"the table is encrypted, and its catalog has no key service: set the property {KMS_TYPE} of the catalog"
        )
    if len(names) > 1:
        raise InvalidArgument(f"{KMS_TYPE} and {KMS_IMPL} are both set; remove one of them")
    return plugins.key_service(names[0])(properties)
