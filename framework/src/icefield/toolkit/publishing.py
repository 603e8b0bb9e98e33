"""Publishing a small file under a name that only one writer can win, and settling the outcome after a lost reply."""

from __future__ import annotations

import logging
from dataclasses import replace

from icefield.abc import FileSystem, InputFile, Pointer, PutMode
from icefield.base.limits import MAX_METADATA_BYTES
from icefield.base.secrets import without_userinfo
from icefield.errors import (
    AccessDenied,
    CommitStateUnknown,
    FileExists,
    FileMissing,
    IcefieldError,
    InvalidFile,
    InvalidMetadata,
    NotDurable,
    StorageError,
)
from icefield.metadata.file_names import version_of
from icefield.toolkit.input_files import read_bounded

_log = logging.getLogger(__name__)

_TRIES = 4


def publish_by_create(system: FileSystem, target: str, data: bytes) -> Pointer | None:
    """Put a file if the name is free; return the pointer if the file is ours, None if it is another writer's.

    Raises ``CommitStateUnknown`` if the reply was lost and reading back does not determine the outcome.
    """
    try:
        etag = system.put(target, data, PutMode.CREATE)
    except Exception as error:
        # A name that is taken may be ours, after a lost reply and a retry inside the client. No other error is trusted
        # to say that nothing happened, either.
        return _settled(system, target, data, error)
    # ``VersionedStrategy`` makes the same stamp of a ``stat``, so that the next commit need not read the file again.
    return replace(_published(target), stamp=(len(data), etag)) if isinstance(etag, str) else _published(target)


def publish_by_rename(system: FileSystem, target: str, data: bytes, temporary: str) -> Pointer | None:
    """Write under a temporary name and rename without replacing; the pointer when the file there is ours, else None.

    Raises ``CommitStateUnknown`` when the reply was lost and reading back does not settle it; the temporary file
    then stays, since the rename may still happen.
    """
    with system.open_output(temporary) as sink:
        sink.write(data)
    try:
        system.rename(temporary, target)
    except Exception as error:
        # A source that is gone means that an earlier try of the client did rename it.
        try:
            ours = _settled(system, target, data, error)
        except CommitStateUnknown:
            raise
        except IcefieldError:
            delete_quietly(system, temporary)
            raise
        if ours is None:
            delete_quietly(system, temporary)
        return ours
    return _published(target)


def delete_quietly(system: FileSystem, location: str) -> None:
    """Delete a file that nothing refers to; a failure leaves an orphan and is no error of anyone."""
    for _ in range(_TRIES):
        try:
            system.delete_many([location])
        except StorageError as error:
            if error.retryable:
                continue
        except Exception as error:  # a file system that breaks its contract must not change an outcome either
            _log.warning("could not delete %s: %s", without_userinfo(location), type(error).__name__)
        return


def read_whole(system: FileSystem, location: str) -> bytes:
    """The bytes of a metadata file. Raises ``FileMissing``, and ``InvalidMetadata`` for a file that is too large."""
    source = system.open_input(location)
    try:
        return whole_of(source, location)
    finally:
        source.close()


def whole_of(source: InputFile, location: str) -> bytes:
    """The bytes of an open metadata file. Raises ``InvalidMetadata`` for a file that is too large."""
    try:
        return read_bounded(source, location, MAX_METADATA_BYTES)
    except InvalidFile as error:
        raise InvalidMetadata(f"{error.message}", location=location) from error


def _settled(system: FileSystem, target: str, data: bytes, error: Exception) -> Pointer | None:
    """The pointer to the file at ``target`` if its bytes are ours; None if it is another writer's file.

    Raises ``error`` if it is a refusal and our file is not there, which means that nothing happened.
    """
    if isinstance(error, NotDurable):
        raise CommitStateUnknown(
            f"{target} may be published, but the storage did not confirm that it outlasts a loss of power; nothing was "
            "deleted: look at the storage, load the table again and look for the change before repeating it",
            location=target,
            visible=True,
        ) from error
    refusal = error if isinstance(error, IcefieldError) and not error.retryable else None
    try:
        found = read_whole(system, target) == data
    except InvalidMetadata:  # far larger than anything that is written here
        found = False
    except FileMissing as missing:
        if refusal is not None and not isinstance(refusal, FileExists):
            raise refusal from missing
        raise _unknown(target) from error
    except Exception:
        if refusal is not None and not isinstance(refusal, FileExists | FileMissing) and _is_certain(refusal):
            raise refusal from None
        raise _unknown(target) from error
    if found:
        return _published(target)
    if refusal is not None and not isinstance(refusal, FileExists | FileMissing):
        raise refusal
    return None


def _is_certain(refusal: IcefieldError) -> bool:
    """Whether a refusal is certain: the store's own response, or an error before any request, but no failed request."""
    return isinstance(refusal, AccessDenied) or not isinstance(refusal, StorageError)


def _published(target: str) -> Pointer:
    return Pointer(target, version_of(target))


def _unknown(target: str) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"the reply to publishing {target} was lost and reading it back did not settle whether it happened; nothing "
        "was deleted: load the table again and look for the change before repeating it",
        location=target,
    )
