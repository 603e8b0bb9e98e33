"""The one error tree.

Every error is an ``IcefieldError`` and also the nearest built-in, carries the data it speaks of as attributes,
says whether trying again can help (``retryable``) and ends in what the reader can do about it.
"""

from __future__ import annotations

from typing import Any

from icefield.base.secrets import without_userinfo


def printable(text: str) -> str:
    """A text in which every character that does not print (a control, a direction of writing) is spelt out."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


class IcefieldError(Exception):
    """The root of every error that Icefield raises on purpose.

    Keyword arguments become attributes (``location``, ``table``, ``plugin``, ``field_id``, ...), so that a caller
    can act on them without reading the message. Neither shows a password that is part of a location or a URI, and the
    message is one printable line, whatever characters are in the names that it holds.
    """

    retryable = False

    def __init__(self, message: str, **data: Any) -> None:
        message = printable(without_userinfo(message))
        data = {name: without_userinfo(value) if isinstance(value, str) else value for name, value in data.items()}
        super().__init__(message)
        self.message = message
        self.data = data
        for name, value in data.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.data)


def _rebuild(kind: type[IcefieldError], message: str, data: dict[str, Any]) -> IcefieldError:
    return kind(message, **data)


class InvalidArgument(IcefieldError, ValueError):
    """A value given by the caller cannot be used: wrong type, wrong form, out of range."""


class InvalidSchema(InvalidArgument):
    """A schema, partition spec, sort order or a change of one breaks a rule of the format."""


class InvalidExpression(InvalidArgument):
    """A filter cannot be parsed, or does not fit the schema it is bound to."""


class InvalidMetadata(IcefieldError, ValueError):
    """Table metadata, a manifest list or a manifest is damaged or breaks the format. Carries ``location``."""


class InvalidFile(IcefieldError, ValueError):
    """A data file is damaged or is not of the format it is said to be. Carries ``location``."""


class UnsupportedFeature(IcefieldError, ValueError):
    """A valid thing of the format that this version does not handle: a format version, a type, a codec."""


class FileMissing(IcefieldError, FileNotFoundError):
    """A file that was asked for is not there. Carries ``location``."""


class FileExists(IcefieldError, FileExistsError):
    """A file was to be created under a name that is taken. Carries ``location``."""


class StorageError(IcefieldError, OSError):
    """A file system failed. Carries ``location``; ``retryable`` is true when the failure may pass."""

    def __init__(self, message: str, *, retryable: bool = False, **data: Any) -> None:
        super().__init__(message, **data)
        self.retryable = retryable
        self.data = {**self.data, "retryable": retryable}


class NotDurable(StorageError):
    """A file is published, and the storage did not confirm that it stays. Carries ``location``."""


class AccessDenied(StorageError, PermissionError):
    """A file system refused an operation for want of a right, or because it can only be read. Carries ``location``."""


class LocationRefused(IcefieldError, PermissionError):
    """A location that is not opened: the configuration does not allow its scheme or root, or it is no absolute one.

    Carries ``location``.
    """


class LocationInUse(InvalidArgument):
    """The location that was given for a table is another table's. Carries ``location``."""


class LocationWarning(UserWarning):
    """A location may be another table's: a table was there, and nobody can know whether it still is one."""


class NoSuchTable(IcefieldError, LookupError):
    """No table has that identifier. Carries ``table``."""


class TableExists(IcefieldError, ValueError):
    """A table with that identifier exists already. Carries ``table``."""


class NoSuchView(IcefieldError, LookupError):
    """No view has that identifier. Carries ``view``."""


class ViewExists(IcefieldError, ValueError):
    """A view with that identifier exists already. Carries ``view``."""


class NoSuchNamespace(IcefieldError, LookupError):
    """No namespace has that name. Carries ``namespace``."""


class NamespaceExists(IcefieldError, ValueError):
    """A namespace with that name exists already. Carries ``namespace``."""


class NamespaceNotEmpty(IcefieldError, ValueError):
    """A namespace that still holds something cannot be dropped. Carries ``namespace``."""


class NoSuchSnapshot(IcefieldError, LookupError):
    """The table has no such snapshot, branch or tag, or none that old. Carries ``table`` or ``snapshot_id``."""


class NotSupportedByCatalog(IcefieldError, TypeError):
    """A declared gap of the catalog: it cannot do this safely, and nothing was changed."""


class CommitFailed(IcefieldError, RuntimeError):
    """Another commit came first and retries did not settle it. Nothing of this change is visible."""

    retryable = True


class ValidationFailed(CommitFailed, ValueError):
    """A concurrent commit broke a condition of this change, so re-applying it would be wrong."""

    retryable = False


class CommitStateUnknown(IcefieldError, RuntimeError):
    """The reply to a commit was lost and nobody can know whether it happened. No file was deleted.

    Load the table again and look for the change before repeating it. ``visible`` is true where the change is there, and
    the storage did not confirm that it outlasts a loss of power.
    """

    visible = False


class PartlyCommitted(UserWarning):
    """A service made a commit and left out a part of it, such as a tag that it does not keep.

    The commit happened: do not repeat it. ``table`` is its name, ``missing`` says what is not there.
    """

    def __init__(self, message: str, table: tuple[str, ...] = (), missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.table, self.missing = table, missing


class UnsafeCommit(IcefieldError, ValueError):
    """A commit strategy was asked for on storage that cannot keep its promise. Names the alternatives."""


class MissingPlugin(IcefieldError, LookupError):
    """No installed plugin provides what was asked for. The message holds the pip command that helps."""


class BrokenPlugin(IcefieldError, ImportError):
    """A plugin failed to load or breaks its contract. Carries ``plugin``, its distribution and version."""


class PluginConflict(IcefieldError, ValueError):
    """Two plugins provide the same name and the configuration prefers neither."""
