"""One course of events: writers, a reader and perhaps a process that drops the table, and the final invariants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from icefield.abc import CommitStrategy, Committed, Conflict, Pointer, Proposal
from icefield.errors import CommitStateUnknown, FileMissing, IcefieldError
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, new_table_metadata, with_metadata_log
from icefield.metadata.updates.table import SetProperties
from icefield.schema import Schema
from icefield.types import LongType, NestedField

from simulation.stores import SimulatedFileSystem
from simulation.world import Odds, World

LOCATION = "sim://wh/t"
ATTEMPTS = 12
ODDS = Odds()
# The log is short, so that it soon lacks the version directly after a base.
_SHORT_LOG = {"write.metadata.previous-versions-max": "2"}
Build = Callable[[SimulatedFileSystem], CommitStrategy]


class Wrong(AssertionError):
    """A promise was broken in this course of events."""


@dataclass
class Account:
    """The results that the writers got, by the uuid of the table."""

    done: dict[str, set[str]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    bases: dict[tuple[str, str], str] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    """The uuids of tables that were dropped."""
    created: str = ""
    """The uuid of the table that was created last."""
    certain: bool = True
    """Whether the process that drops and creates the table learned the result of each step."""


class Course:
    """A course of events with one seed; with ``drops``, the table is dropped and created again in some of them."""

    def __init__(self, build: Build, seed: int, *, drops: bool = False, writers: int = 3, commits: int = 2) -> None:
        self._drops = drops and seed % 10 < 3
        self.world = World(seed, ODDS)
        self.files: dict[str, bytes] = {}
        self.account = Account()
        self._read: dict[bytes, TableMetadata] = {}
        self._build = build
        self._commits = commits
        self._writers = writers

    def run(self) -> None:
        """Run the course and check its end. Raises ``Wrong`` with the trace."""
        try:
            metadata = self._fresh()
            self.account.created = str(metadata.table_uuid)
            assert isinstance(self._strategy().commit(None, Proposal(metadata)), Committed)
            for number in range(self._writers):
                self.world.start(f"writer {number}", lambda number=number: self._write(number))  # type: ignore[misc]
            self.world.start("reader", self._read_on)
            if self._drops:
                self.world.start("dropper", self._drop_and_create)
            self.world.run()
            self._check()
        except AssertionError as error:
            raise Wrong(f"{error}\n" + "\n".join(self.world.trace)) from error

    def _strategy(self) -> CommitStrategy:
        return self._build(SimulatedFileSystem(self.world, self.files))

    def _fresh(self) -> TableMetadata:
        schema = Schema(NestedField(1, "id", LongType()))
        return new_table_metadata(schema, location=LOCATION, properties=_SHORT_LOG)

    def _load(self, strategy: CommitStrategy) -> tuple[Pointer, TableMetadata] | None:
        pointer = strategy.load()
        if pointer is None:
            return None
        data = strategy.file_system.open_input(pointer.location).read()
        # Decoding takes half of the time of a course, and gives every reader of a version the same metadata.
        metadata = self._read.get(data)
        if metadata is None:
            metadata = self._read[data] = decode_metadata(data, pointer.location)
        return pointer, metadata

    def _write(self, writer: int) -> None:
        strategy = self._strategy()
        for number in range(self._commits):
            for attempt in range(ATTEMPTS):
                name = f"{writer}-{number}-{attempt}"
                try:
                    found = self._load(strategy)
                    if found is None:
                        break
                    base, metadata = found
                    outcome = strategy.commit(base, _changed(base, metadata, name))
                except CommitStateUnknown:
                    break
                except IcefieldError:
                    # Not committed, says the contract.
                    self.account.refused.add(name)
                    continue
                if isinstance(outcome, Conflict):
                    self.account.refused.add(name)
                    continue
                self._note(name, base, outcome.pointer, metadata)
                break

    def _note(self, name: str, base: Pointer, made: Pointer, metadata: TableMetadata) -> None:
        uuid = str(metadata.table_uuid)
        self.account.done.setdefault(uuid, set()).add(name)
        other = self.account.bases.setdefault((uuid, base.location), made.location)
        assert other == made.location, f"two commits on one base: {base.location}"

    def _read_on(self) -> None:
        strategy = self._strategy()
        seen: dict[str, set[str]] = {}
        for _ in range(6):
            before = {uuid: set(names) for uuid, names in self.account.done.items()}
            gone = set(self.account.dropped)
            try:
                found = self._load(strategy)
            except FileMissing as error:
                raise AssertionError(f"a version that is current is not there: {error}") from error
            except IcefieldError:
                continue
            if found is None:
                assert self._drops, "the table is not there"
                continue
            uuid, names = str(found[1].table_uuid), set(found[1].properties)
            assert uuid not in gone, "a reader sees a table that was dropped before"
            assert names >= before.get(uuid, set()), "a reader does not see what was committed before"
            assert names >= seen.get(uuid, set()), "a reader sees less than before"
            seen[uuid] = names

    def _drop_and_create(self) -> None:
        strategy, account = self._strategy(), self.account
        for _ in range(1 + self.world.random.randrange(2)):
            account.certain = False  # until each step is answered
            try:
                strategy.drop()
                account.dropped.add(account.created)
                metadata = self._fresh()
                assert isinstance(strategy.commit(None, Proposal(metadata)), Committed), "nobody else creates a table"
            except IcefieldError:
                return
            account.created, account.certain = str(metadata.table_uuid), True

    def _check(self) -> None:
        found = self._load(self._strategy())
        account = self.account
        if found is None:
            assert not account.certain, "the table is lost"
            return
        metadata = found[1]
        uuid = str(metadata.table_uuid)
        assert uuid not in account.dropped, "a table that was dropped is there again"
        assert uuid == account.created or not account.certain, "another table is there than the one created last"
        names = set(metadata.properties)
        lost = account.done.get(uuid, set()) - names
        assert not lost, f"committed, and not there: {sorted(lost)}"
        there = account.refused & names
        assert not there, f"refused, and there: {sorted(there)}"


def _changed(base: Pointer, metadata: TableMetadata, name: str) -> Proposal:
    """The next version, with the property and with the metadata log that every commit continues."""
    changed = apply_updates(metadata, [SetProperties({name: "1"})])
    return Proposal(with_metadata_log(changed, base.location, metadata.last_updated_ms), base=metadata)
