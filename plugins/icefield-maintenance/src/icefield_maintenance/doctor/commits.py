"""Whether commits exclude each other: several concurrent commits to a test table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from icefield.abc import CommitStrategy, Committed, FileSystem, FileSystemAbility, Pointer, Proposal
from icefield.commit import change_of, creation_of, current_of
from icefield.errors import CommitFailed, FileMissing, IcefieldError
from icefield.metadata import SetProperties, TableMetadata, decode_metadata, new_table_metadata
from icefield.schema import Schema
from icefield.toolkit import delete_quietly, read_whole
from icefield.types import LongType, NestedField

from icefield_maintenance.doctor.findings import Broken, Finding, Result, skipped, tried
from icefield_maintenance.doctor.races import race

RIVALS = 4
_MARK = "icefield-doctor.writer"
_UNSAFE = "do not let several write through this catalog: commits would lose updates; use another strategy or catalog"


class CommitExamination:
    """A test table that is created, changed by concurrent commits, and dropped.

    ``open_strategy`` makes a new strategy for the table, as another process would. ``location`` is the location of the
    table: all files below it must belong to this examination.
    """

    def __init__(
        self,
        open_strategy: Callable[[], CommitStrategy],
        system: FileSystem,
        location: str,
        properties: Mapping[str, str],
        rivals: int = RIVALS,
    ) -> None:
        self._open, self._system, self._location = open_strategy, system, location.rstrip("/")
        self._properties, self._rivals = properties, rivals
        self._pointers: list[str] = []
        self._tried = False

    def run(self) -> list[Finding]:
        """Run all checks. The table and its files are removed, also after an error."""
        findings: list[Finding] = []
        try:
            findings.append(self._try("create a table", self._create))
            names = {"commit on an old base": self._old_base, "commits at once": self._at_once}
            for name, check in names.items():
                if findings[0].result is Result.OK:
                    findings.append(self._try(name, check))
                else:
                    findings.append(skipped(name, "no table could be created"))
        finally:
            if self._tried:
                dropped = self._try("drop the table", self._drop)
                findings += [dropped] if self._pointers or dropped.result is not Result.OK else []
            findings += self._clean_up()
        return findings

    def _try(self, check: str, action: Callable[[], str | None]) -> Finding:
        return tried(check, action, self._properties, f"commit to a table at {self._location}")

    def _create(self) -> str:
        proposal = self._new("first")
        self._tried = True
        if self._commit(None, proposal) is None:
            raise Broken("creating a table of a new name was a conflict", _UNSAFE)
        # The second table has another uuid, since with the same uuid it would be the same table.
        if self._commit(None, self._new("second")) is not None:
            raise Broken("a table was created twice under one name, and the second was not refused", _UNSAFE)
        self._expect("first")
        strategy = self._open()
        asked = strategy.credentials()
        return f"by {type(strategy).__name__}" + (f", with the credentials {asked}" if asked else "")

    def _old_base(self) -> None:
        old, metadata = self._current()
        if self._commit(old, self._marked(metadata, "third")) is None:
            raise Broken("a commit on the current version was a conflict, with nobody else there", _UNSAFE)
        if self._commit(old, self._marked(metadata, "late")) is not None:
            raise Broken("a commit on an old version was not refused: it undid the one before", _UNSAFE)
        self._expect("third")

    def _at_once(self) -> str:
        base, metadata = self._current()
        refusals: list[str] = []

        def commit(rival: int) -> bool:
            try:
                return self._commit(base, self._marked(metadata, f"rival-{rival}")) is not None
            except CommitFailed as error:  # the lock went to others for too long: refused as well
                refusals.append(str(error))
                return False

        won = race(self._rivals, commit)
        if len(won) != 1:
            said = f" ({refusals[0]})" if refusals else ""
            raise Broken(f"{len(won)} of {self._rivals} commits at once on one version succeeded{said}", _UNSAFE)
        self._expect(f"rival-{won[0]}")
        return f"one of {self._rivals} won"

    def _drop(self) -> None:
        strategy = self._open()
        if strategy.load() is None:
            return  # creating it had failed
        strategy.drop()
        if self._open().load() is not None:
            raise Broken("a table that was dropped is still there", f"drop the table {'.'.join(strategy.table)}")

    def _clean_up(self) -> list[Finding]:
        if self._tried:
            with suppress(Exception):  # the code below looks for remaining files
                self._open().purge()
        for location in self._files():
            delete_quietly(self._system, location)
        left = self._files()
        for folder in (f"{self._location}/metadata", self._location):
            self._system.remove_empty_folder(folder)
        if not left:
            return []
        return [
            Finding(
                "clean-up",
                Result.FAILED,
                f"{len(left)} files of this examination are left, such as {left[0]}",
                f"delete what is in {self._location}, and give the credentials in use the right to delete",
            )
        ]

    def _files(self) -> list[str]:
        """The files below the table's location: listed, or reported by commits if the file system cannot list."""
        try:
            if FileSystemAbility.LIST in self._system.abilities:
                return [info.location for info in self._system.list_files(self._location)]
            return [location for location in self._pointers if self._is_there(location)]
        except IcefieldError:
            return list(self._pointers)

    def _is_there(self, location: str) -> bool:
        try:
            self._system.stat(location)
        except FileMissing:
            return False
        return True

    def _commit(self, base: Pointer | None, proposal: Proposal) -> Pointer | None:
        """The new pointer, or None for a conflict."""
        outcome = self._open().commit(base, proposal)
        if not isinstance(outcome, Committed):
            return None
        self._pointers.append(outcome.pointer.location)
        return outcome.pointer

    def _current(self) -> tuple[Pointer, TableMetadata]:
        current = current_of(self._open())
        if current is None:
            raise Broken("a table that was created is not there", _UNSAFE)
        location = current.pointer.location
        return current.pointer, current.metadata or decode_metadata(read_whole(self._system, location), location)

    def _expect(self, mark: str) -> None:
        found = self._current()[1].properties.get(_MARK)
        if found != mark:
            raise Broken(f"the version of '{mark}' was committed, and that of '{found}' is there", _UNSAFE)

    def _new(self, mark: str) -> Proposal:
        schema = Schema(NestedField(1, "id", LongType()))
        return creation_of(new_table_metadata(schema, location=self._location, properties={_MARK: mark}))

    def _marked(self, metadata: TableMetadata, mark: str) -> Proposal:
        return change_of(metadata, [SetProperties({_MARK: mark})])
