"""The one error tree.

Every error is an ``IcefieldError`` and a subclass of the nearest built-in exception. It carries its data as attributes
and states whether a retry can help (``retryable``). Its message ends with advice for the user.
"""

from __future__ import annotations

from typing import Any

from icefield.base.secrets import without_userinfo


def printable(text: str) -> str:
    """A text with unprintable characters escaped, such as control characters and marks of writing direction."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


class IcefieldError(Exception):
    """The root of every error that Icefield raises on purpose.

    Keyword arguments become attributes (``location``, ``table``, ``plugin``, ``field_id``, ...), so that a caller can
    act on them without reading the message. Passwords in locations and URIs are redacted in the attributes and in the
    message. The message is one printable line; unprintable characters are escaped.
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


class DecryptionFailed(InvalidFile):
    """A file, or a wrapped key, that its key does not open: it is damaged, cut, exchanged, or not encrypted."""


class UnsupportedFeature(IcefieldError, ValueError):
    """A valid feature of the format that this version does not support: a format version, a type, a codec."""


class FileMissing(IcefieldError, FileNotFoundError):
    """A requested file does not exist. Carries ``location``."""


class FileExists(IcefieldError, FileExistsError):
    """A file cannot be created because its name is taken. Carries ``location``."""


class StorageError(IcefieldError, OSError):
    """A file system failed. Carries ``location``; ``retryable`` is true when the failure may pass."""

    def __init__(self, message: str, *, retryable: bool = False, **data: Any) -> None:
        super().__init__(message, **data)
        self.retryable = retryable
        self.data = {**self.data, "retryable": retryable}


class NotDurable(StorageError):
    """A file is published, but the storage did not confirm that it is durable. Carries ``location``."""


class AccessDenied(StorageError, PermissionError):
    """A file system refused an operation: permission is missing, or it is read-only. Carries ``location``."""


class KeyUnavailable(IcefieldError, LookupError):
    """A key service has no such master key, or a catalog has no key service."""


class LocationRefused(IcefieldError, PermissionError):
    """A location is refused: the configuration does not allow its scheme or root, or it is not absolute.

    Carries ``location``.
    """


class LocationInUse(InvalidArgument):
    """The location that was given for a table is another table's. Carries ``location``."""


class LocationWarning(UserWarning):
    """A location may belong to another table: a table was there, and it is unknown whether it still exists."""


class UncommittedWarning(UserWarning):
    """A transaction, or a change that was built step by step, was dropped without a commit, so its changes are lost."""


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
    """The catalog does not support an operation, because it cannot do it safely. Nothing was changed."""


class CommitFailed(IcefieldError, RuntimeError):
    """Another commit came first and retries did not settle it. Nothing of this change is visible."""

    retryable = True


class ValidationFailed(CommitFailed, ValueError):
    """A concurrent commit broke a condition of this change, so re-applying it would be wrong."""

    retryable = False


class CommitStateUnknown(IcefieldError, RuntimeError):
    """The reply to a commit was lost, and it is unknown whether the commit happened. No file was deleted.

    Load the table again and look for the change before repeating it. ``visible`` is true if the change is visible, but
    the storage did not confirm that it is durable.
    """

    visible = False


class PartlyCommitted(UserWarning):
    """A service made a commit and left out a part of it, such as a tag that it does not keep.

    The commit happened: do not repeat it. ``table`` is the table's name, ``missing`` lists the omitted parts.
    """

    def __init__(self, message: str, table: tuple[str, ...] = (), missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.table, self.missing = table, missing


class UnsafeCommit(IcefieldError, ValueError):
    """A commit strategy is configured for storage that cannot keep its promise. Names the alternatives."""


class MissingPlugin(IcefieldError, LookupError):
    """No installed plugin provides the requested name. The message contains the pip command to install one."""


class BrokenPlugin(IcefieldError, ImportError):
    """A plugin failed to load or breaks its contract. Carries ``plugin``, its distribution and version."""


class PluginConflict(IcefieldError, ValueError):
    """Two plugins provide the same name and the configuration prefers neither."""
