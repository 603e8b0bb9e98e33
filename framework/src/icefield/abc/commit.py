"""The contract of a commit strategy: the one step that makes a change visible.

A strategy publishes the versions of one table: it names, writes and publishes a metadata file, or hands the change to a
service that does. It is built by a catalog with the table's name, its location, its file system and string properties.
It decides nothing about content and never retries a conflict: the one retry loop is ``icefield.commit``.

A strategy may serve several threads at once. It is given all state of a commit as arguments: the base, the
``Proposal``, and the results of each step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from icefield.abc.access import FileAccess
    from icefield.abc.file_system import FileSystem, FileSystemAbility
    from icefield.abc.scans import ScanService
    from icefield.metadata import TableMetadata, TableRequirement, TableUpdate


@dataclass(frozen=True, slots=True)
class Pointer:
    """The location of the current metadata file. ``version`` counts commits, if the strategy knows it.

    ``stamp`` distinguishes the file from an earlier one at the same location, for example by size and modification
    time. Stamps are ignored when pointers are compared.
    """

    location: str
    version: int | None = None
    stamp: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Current:
    """The current version: its pointer, and the data that a service returns with it.

    ``metadata`` is the metadata itself. If it is given, the metadata file is never read and need not be readable.
    ``properties`` are the table's own configuration, such as credentials for its files alone. In the file IO of the
    table they override the catalog's, except for ``location.*``: only the user decides which locations are allowed.
    ``access`` holds credentials that the service renews, or that are for some locations only. For their locations they
    override ``properties``. ``planner`` plans the table's scans, if the service offers it.
    """

    pointer: Pointer
    metadata: TableMetadata | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    access: tuple[FileAccess, ...] = ()
    planner: ScanService | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that is to be committed.

    ``metadata`` is the new metadata, ready to be written. ``updates`` turn the base into it, or create it for a new
    table; ``requirements`` are their preconditions on the base. A service that applies updates itself needs both.
    ``base`` is the metadata of the commit's base; None for a new table. ``is_foreign``: a client of a server stated the
    updates, and may have written the metadata log. Then no file that the log names is deleted.
    """

    metadata: TableMetadata
    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()
    base: TableMetadata | None = None
    is_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Committed(Current):
    """The change is visible, and ``pointer`` names it.

    ``metadata`` is given if the service committed other metadata than the proposal.
    """


@dataclass(frozen=True, slots=True)
class TableChange:
    """The change of one table in a commit of several tables; ``base`` is None for a new table."""

    table: tuple[str, ...]
    base: Pointer | None
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit came first; nothing of this one is visible, and the files of this attempt are gone.

    ``current`` is the pointer of the winning commit, if the strategy knows it.
    """

    current: Pointer | None = None


class CommitStrategy(ABC):
    """Publishes the metadata of one table, atomically.

    The kit tests each of these promises:

    1. ``commit`` succeeds only if ``base`` is current at the instant of the atomic step.
    2. A metadata file is complete and durable before anything points to it.
    3. No operation that can fail follows the atomic step.
    4. When the outcome is unknown, ``CommitStateUnknown`` is raised and no file is deleted. After a lost reply the
       strategy reads the state back first, if that can show the outcome.
    5. Any other exception means that nothing became visible.
    """

    contract: ClassVar[int] = 2
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    needs: ClassVar[tuple[FileSystemAbility, ...]] = ()
    """The file system must declare at least one of these abilities; empty if it needs none."""

    reuses_locations: ClassVar[bool] = True
    """Whether a metadata location may come to name another version, once the table was dropped."""

    @property
    def folder(self) -> str | None:
        """The folder with the metadata files, if the strategy finds the table by it; None by default.

        Such a table has no other location, and ``purge`` deletes the versions in the folder.
        """
        return None

    def __init__(
        self,
        table: tuple[str, ...],
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.table = table
        self.location = location.rstrip("/")
        self.file_system = file_system
        self.properties: dict[str, str] = dict(properties or {})

    @abstractmethod
    def load(self) -> Pointer | Current | None:
        """The current version: a pointer to its metadata file, or a ``Current``; None when there is no table."""

    def is_probably_current(self, known: Pointer) -> bool:
        """Whether a version is probably current, if this takes fewer requests than ``load``. By default False.

        A change begins on such a version without loading it; ``commit`` makes the final check.
        """
        return False

    @abstractmethod
    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        """Replace ``base`` by the proposal; ``base=None`` creates the table, if there is none.

        Raises ``UnsupportedFeature`` for a table property that the strategy cannot honour.
        """

    @abstractmethod
    def drop(self) -> None:
        """Drop the table without deleting its data.

        Raises ``NoSuchTable``, ``CommitStateUnknown``, and ``CommitFailed`` if concurrent commits never stop.
        """

    def credentials(self) -> str | None:
        """A description of the credentials for the strategy's service, without secrets; None without a service."""
        return None

    def tables_in(self, folder: str) -> Iterable[tuple[str, str]]:
        """The other tables and views with their current metadata file below a folder, as far as the store knows them.

        Each is a display name with the location of its metadata file. Tables outside the folder may be included: the
        caller compares locations. Empty by default, for stores that cannot tell. It is called rarely: when a table is
        created or registered at a location with files, and before files are deleted.
        """
        return ()

    def purge(self) -> None:  # noqa: B027 -- a metastore keeps nothing of a dropped table
        """Delete the strategy's own files of a dropped table. Called after its other files are deleted.

        Must spare a new table that was created at the same location.
        """
