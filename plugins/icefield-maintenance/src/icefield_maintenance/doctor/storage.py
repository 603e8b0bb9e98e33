"""The examination of a file system: it tries each operation, and each declared ability, with its own files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from uuid import uuid4

from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileMissing, IcefieldError
from icefield.metadata import VERSION_HINT
from icefield.toolkit import read_whole

from icefield_maintenance.doctor.findings import Broken, Finding, Warned, skipped, tried
from icefield_maintenance.doctor.races import not_refused, race

Alternatives = Callable[[frozenset[FileSystemAbility]], str]
"""Returns advice: the ways to commit that remain if only these abilities work."""

RIVALS = 8
ROUNDS = 3
_RANGED_BYTES = 300_000
_WARNING_MS = 5_000
_WRONG_MS = 60_000
_PLUGIN = (
    "do not use this store through that plugin, and report it to its author (the kit's FileSystemSuite shows it too)"
)


def examine_storage(
    system: FileSystem,
    folder: str,
    *,
    alternatives: Alternatives | None = None,
    writes: bool = True,
    rivals: int = RIVALS,
) -> list[Finding]:
    """Examine a file system at a folder, and leave no file there.

    The examination writes files below ``folder``, which it should not share, under unique names, and always deletes
    them. Without ``writes``, it tries only operations that change nothing. Raises nothing: each problem is a finding.
    """
    examination = StorageExamination(system, folder, alternatives or _metastore_only, rivals)
    if not writes:
        return list(examination.reading())
    findings: list[Finding] = []
    try:
        findings += examination.reading()
        findings += examination.writing()
    finally:
        findings += examination.clean_up()
    return findings


class StorageExamination:
    """Tries each operation for real, under unique names."""

    def __init__(self, system: FileSystem, folder: str, alternatives: Alternatives, rivals: int) -> None:
        self._system, self._folder, self._alternatives, self._rivals = system, folder.rstrip("/"), alternatives, rivals
        self._id = uuid4().hex[:12]
        self._used: list[str] = []
        self._written: str | None = None
        self._skew: tuple[int, int] | None = None
        self.broken: set[FileSystemAbility] = set()
        """The declared abilities that failed their check."""

    def reading(self) -> Iterator[Finding]:
        """The checks that change nothing: reach the store with the credentials, list."""
        yield self._try("credentials", self._reach, "read", self._folder)
        if FileSystemAbility.LIST not in self._system.abilities:
            yield skipped("list", "the file system does not offer it; orphan files cannot be found here")
        else:
            yield self._try("list", self._list_anything, "list", self._folder)

    def writing(self) -> Iterator[Finding]:
        """The checks that write files."""
        wrote = self._try("write", self._write, "write", self._folder)
        yield wrote
        if self._written is None:
            why = f"nothing could be written below {self._folder}"
            names = ("read", "ranges", "clock", "list what was written", "replace", "abandoned write")
            yield from (skipped(name, why) for name in (*names, *(name for _, name, _ in self._promises())))
            return
        yield self._try("read", self._read, "read", self._written)
        yield self._try("ranges", self._ranges, "read", self._folder)
        yield self._try("clock", self._clock, "look at", self._written)
        if FileSystemAbility.LIST in self._system.abilities:
            yield self._try("list what was written", self._list_written, "list", self._folder)
        yield self._try("replace", self._replace, "replace", f"{self._folder}/{VERSION_HINT}")
        yield self._try("abandoned write", self._abandon, "write", self._folder)
        for ability, name, check in self._promises():
            if ability in self._system.abilities:
                yield self._promise(ability, name, check)
            else:
                yield skipped(name, f"not offered here: {self._alternatives(self._kept())}")

    def clean_up(self) -> list[Finding]:
        """Delete every file of the examination, and check that it is gone."""
        if not self._used:
            return []
        if self._written is None:  # perhaps half of something
            deleted = skipped("delete", f"nothing could be written below {self._folder}")
        else:
            deleted = self._try("delete", self._delete, "delete", self._folder)
        left = self._left()
        for location in left:  # one by one: a file that cannot be deleted must not keep the others
            with suppress(Exception):
                self._system.delete_many([location])
        left = self._left()
        self._system.remove_empty_folder(self._folder)
        if not left:
            return [deleted]
        shown = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
        said = Broken(f"{len(left)} files of this examination are left: {shown}", f"delete what is in {self._folder}")
        return [deleted, self._try("clean-up", lambda: _raise(said), "delete", self._folder)]

    def _promises(self) -> tuple[tuple[FileSystemAbility, str, Callable[[], str | None]], ...]:
        return (
            (FileSystemAbility.ATOMIC_CREATE, "atomic create", self._create),
            (FileSystemAbility.ATOMIC_RENAME, "atomic rename", self._rename),
        )

    def _promise(self, ability: FileSystemAbility, name: str, check: Callable[[], str | None]) -> Finding:
        def kept() -> str | None:
            try:
                return check()
            except Broken as broken:
                self.broken.add(ability)
                raise Broken(f"{broken.found}: commits would lose updates", self._remedy(ability)) from None

        return self._try(name, kept, "create" if ability is FileSystemAbility.ATOMIC_CREATE else "rename", self._folder)

    def _remedy(self, ability: FileSystemAbility) -> str:
        declared = self._system.ability_properties.get(ability)
        first = (
            f"declare it by the property {declared}"
            if declared
            else f"this store does not do what {type(self._system).__name__} says of it ({ability.name})"
        )
        return f"{first}; {self._alternatives(self._kept())}"

    def _kept(self) -> frozenset[FileSystemAbility]:
        return frozenset(self._system.abilities) - self.broken

    # -- the checks: each returns an observation, or raises

    def _reach(self) -> str | None:
        with suppress(FileMissing):  # the store answers, which is enough
            self._system.stat(f"{self._folder}/{self._id}-nothing")
        return self._system.credentials(self._folder) or "the store answers"

    def _list_anything(self) -> None:
        next(iter(self._system.list_files(self._folder, shallow=True)), None)

    def _write(self) -> None:
        location = self._new("written")
        before = time.time_ns() // 1_000_000
        self._stream(location, b"written")
        after = time.time_ns() // 1_000_000
        self._written, self._skew = location, (before, after)

    def _read(self) -> None:
        assert self._written is not None
        found = self._read_whole(self._written)
        if found != b"written":
            raise Broken(f"7 bytes were written and {len(found)} others read back", _PLUGIN)
        size = self._system.stat(self._written).size
        if size != 7:
            raise Broken(f"a file of 7 bytes is said to have {size}", _PLUGIN)

    def _ranges(self) -> None:
        location, data = self._new("ranged"), os.urandom(_RANGED_BYTES)
        self._stream(location, data)
        source = self._system.open_input(location)
        try:
            for start, length in ((0, 4), (65_537, 1_000), (_RANGED_BYTES - 8, 100), (131_072, 70_000)):
                source.seek(start)
                if bytes(source.read(length)) != data[start : start + length]:
                    raise Broken(f"bytes {start} to {start + length} of a file do not read back", _PLUGIN)
            source.seek(-8, os.SEEK_END)
            if bytes(source.read()) != data[-8:]:
                raise Broken("the last bytes of a file do not read back", _PLUGIN)
        finally:
            source.close()

    def _clock(self) -> str | None:
        assert self._written is not None
        assert self._skew is not None
        modified = self._system.stat(self._written).modified_ms
        if modified is None:
            return "the store does not state when a file was written"
        before, after = self._skew
        skew = modified - after if modified > after else min(modified - before, 0)
        if abs(skew) <= _WARNING_MS:
            return f"within {_WARNING_MS // 1_000} s of this machine's"
        found = f"the store's clock is {abs(skew) / 1_000:.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
        advice = (
            "set this machine's clock by NTP (and the store's, if it is yours): signed requests are refused, old files "
            "look new to maintenance, and time travel picks other snapshots when clocks differ"
        )
        raise (Broken if abs(skew) > _WRONG_MS else Warned)(found, advice)

    def _list_written(self) -> None:
        assert self._written is not None
        found = {info.location: info.size for info in self._system.list_files(self._folder)}
        if found.get(self._written) != 7:
            raise Broken("a file that was written is not listed, or with another size or location", _PLUGIN)

    def _replace(self) -> None:
        location = self._new("replaced")
        for content in (b"first", b"second"):
            self._system.put(location, content, PutMode.OVERWRITE)
        if self._read_whole(location) != b"second":
            raise Broken("a file that was replaced reads as it was before", _PLUGIN)

    def _abandon(self) -> None:
        location = self._new("abandoned")
        sink = self._system.open_output(location)
        sink.write(b"half of it")
        sink.abort()
        with suppress(FileMissing):
            self._system.stat(location)
            raise Broken("a file whose writing was given up is there", _PLUGIN)

    def _create(self) -> str:
        once = self._new("created")
        self._system.put(once, b"first", PutMode.CREATE)
        if not_refused(lambda: self._system.put(once, b"second", PutMode.CREATE)):
            raise Broken("a file was created twice under one name, and the second was not refused", "")
        if self._read_whole(once) != b"first":
            raise Broken("creating a file was refused, and replaced it nevertheless", "")
        for trial in range(ROUNDS):
            target = self._new(f"created-{trial}")
            won = race(self._rivals, lambda rival, at=target: self._put_new(at, rival))  # type: ignore[misc]
            self._one_winner(won, target, "created")
        return f"one of {self._rivals} at once won, {ROUNDS} times"

    def _rename(self) -> str:
        taken, source = self._new("taken"), self._new("source")
        for location in (taken, source):
            self._stream(location, location.encode())
        if not_refused(lambda: self._system.rename(source, taken)):
            raise Broken("a file was renamed to a name that is taken, and that was not refused", "")
        if self._read_whole(taken) != taken.encode() or self._read_whole(source) != source.encode():
            raise Broken("renaming a file was refused, and changed a file nevertheless", "")
        for trial in range(ROUNDS):
            target = self._new(f"renamed-{trial}")
            rivals = [self._new(f"rival-{trial}-{rival}") for rival in range(self._rivals)]
            for rival, location in enumerate(rivals):
                self._stream(location, b"%d" % rival)
            won = race(
                self._rivals,
                lambda rival, at=target, of=rivals: not_refused(lambda: self._system.rename(of[rival], at)),  # type: ignore[misc]
            )
            self._one_winner(won, target, "renamed")
        return f"one of {self._rivals} at once won, {ROUNDS} times"

    def _put_new(self, target: str, rival: int) -> bool:
        return not_refused(lambda: self._system.put(target, b"%d" % rival, PutMode.CREATE))

    def _one_winner(self, won: list[int], target: str, done: str) -> None:
        if len(won) > 1:
            raise Broken(f"{len(won)} of {self._rivals} writers at once {done} one file, where it had to be 1", "")
        content = self._read_whole(target)
        whole = {b"%d" % rival for rival in (won or range(self._rivals))}  # none won where the winner's reply was lost
        if content not in whole:
            raise Broken(f"the file that one writer {done} holds what another one wrote", "")

    def _delete(self) -> None:
        self._system.delete_many(self._used)
        self._system.delete_many(self._used[:1])  # deleting a missing file is no error
        if left := self._left():
            raise Broken(f"a file that was deleted is still there: {left[0]}", _PLUGIN)

    # -- helpers of the checks

    def _left(self) -> list[str]:
        return [location for location in self._used if self._is_there(location)]

    def _is_there(self, location: str) -> bool:
        try:
            self._system.stat(location)
        except FileMissing:
            return False
        except IcefieldError:
            return location == self._written
        return True

    def _try(self, check: str, action: Callable[[], str | None], verb: str, location: str) -> Finding:
        return tried(check, action, self._system.properties, f"{verb} {location}")

    def _new(self, name: str) -> str:
        location = f"{self._folder}/{self._id}-{name}"
        self._used.append(location)
        return location

    def _stream(self, location: str, data: bytes) -> None:
        with self._system.open_output(location) as sink:
            sink.write(data)

    def _read_whole(self, location: str) -> bytes:
        return bytes(read_whole(self._system, location))


def _raise(error: Exception) -> None:
    raise error


def _metastore_only(kept: frozenset[FileSystemAbility]) -> str:
    names = " or ".join(sorted(ability.name for ability in kept)) or "neither"
    return f"use a commit strategy that needs {names}, or a metastore catalog"
