"""The contract of a commit strategy: the one step that makes a change visible.

A strategy publishes the versions of one table: it names, writes and publishes a metadata file, or hands the change to a
service that does. It is built by a catalog with the table's name, its location, its file system and string properties.
It decides nothing about content and never retries a conflict: the one retry loop is ``icefield.commit``.

A strategy may serve several threads at once. What belongs to one commit is in the values that are passed: the base, the
``Proposal``, and what the steps of a commit return.
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
    """Which metadata file is current. ``version`` counts commits where the strategy knows it.

    ``stamp`` distinguishes the file from another that had the same location before, as by size and time of change; two
    pointers are equal whatever their stamps.
    """

    location: str
    version: int | None = None
    stamp: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Current:
    """What is current: the pointer, and what a service hands out with it.

    ``metadata`` is the metadata itself; the file that the pointer names is then never read, and need not be readable.
    ``properties`` are the table's own configuration, such as credentials that open its files and no others. The file IO
    of the table has them over the catalog's, but for ``location.*``: what the user allows is not the service's to say.
    ``access`` is what the service renews, or gives for some locations alone: it comes over ``properties`` there.
    ``planner`` plans the table's scans, where the service does that.
    """

    pointer: Pointer
    metadata: TableMetadata | None = field(default=None, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    access: tuple[FileAccess, ...] = ()
    planner: ScanService | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that is to be committed.

    ``metadata`` is what shall be current, ready to be written. ``updates`` lead there from the base, or from nothing
    where the table is created, and ``requirements`` say what of the base they rely on: for a service that applies them
    itself. ``base`` is the metadata that the base of the commit names, which was read already; None for a new table.
    """

    metadata: TableMetadata
    updates: tuple[TableUpdate, ...] = ()
    requirements: tuple[TableRequirement, ...] = ()
    base: TableMetadata | None = None


@dataclass(frozen=True, slots=True)
class Committed(Current):
    """The change is visible, and ``pointer`` names it.

    With ``metadata`` where a service has made something else of the proposal than was proposed.
    """


@dataclass(frozen=True, slots=True)
class TableChange:
    """One table's part of a change of several; ``base`` is None where the table is created."""

    table: tuple[str, ...]
    base: Pointer | None
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class Conflict:
    """Another commit came first; nothing of this one is visible, and the files of this attempt are gone.

    ``current`` is the pointer that won, where the strategy learnt it.
    """

    current: Pointer | None = None


class CommitStrategy(ABC):
    """Publishes the metadata of one table, atomically.

    The promises, all of which the kit tries to break:

    1. ``commit`` succeeds only if ``base`` is current at the instant of the atomic step.
    2. A metadata file is complete and durable before anything points to it.
    3. After the atomic step nothing is done that can fail.
    4. When the outcome cannot be known, ``CommitStateUnknown`` is raised and no file is deleted. A reply that was
       lost is settled by reading back, where that can settle it.
    5. Any other exception means that nothing became visible.
    """

    contract: ClassVar[int] = 2
    """The version of this contract. A plugin states the versions that it fulfils in its ``Provider``."""

    needs: ClassVar[tuple[FileSystemAbility, ...]] = ()
    """The file system must declare at least one of these; empty: it needs nothing of the store."""

    reuses_locations: ClassVar[bool] = True
    """Whether a metadata location may come to name another version, once the table was dropped."""

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
        """What is current: a pointer to a metadata file, or more than that; None when there is no table."""

    @abstractmethod
    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        """Replace ``base`` by what is proposed; ``base=None`` creates the table, if there is none.

        Raises ``UnsupportedFeature`` for a table property that the strategy cannot honour.
        """

    @abstractmethod
    def drop(self) -> None:
        """Take the table out of existence, without deleting data.

        Raises ``NoSuchTable``, ``CommitFailed`` where others commit to it all the time, and ``CommitStateUnknown``.
        """

    def credentials(self) -> str | None:
        """Which credentials the strategy's service is asked with, in words that hold no secret; None without one."""
        return None

    def tables_in(self, folder: str) -> Iterable[tuple[str, str]]:
        """The other tables, and views, whose current metadata file is below a folder, as far as the store knows them.

        Each is a name for people, with the location of its metadata file. More than are below the folder may be given:
        the caller compares. By default none, where nobody knows. It is asked rarely: when a table is created or
        registered at a place where files are, and before files are deleted.
        """
        return ()

    def purge(self) -> None:  # noqa: B027 -- a metastore keeps nothing of a dropped table
        """Delete what the strategy itself has kept of a dropped table. Called when its other files are gone.

        Must spare a table that was created in its place meanwhile.
        """
