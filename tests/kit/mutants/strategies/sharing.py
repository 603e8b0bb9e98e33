"""Strategies that are broken on purpose for threads, forked processes, secrets and similar names."""

from __future__ import annotations

import logging
import random
import socket
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar
from urllib.parse import unquote
from uuid import uuid4

from icefield.abc import Committed, Conflict, FileSystem, Pointer, Proposal, PutMode
from icefield.errors import StorageError
from icefield.metadata import encode_metadata
from icefield.toolkit import OutcomeUnknown, reset_after_fork
from pointer_service import ServiceStrategy, reply_over

from mutants import Mutant, of

_log = logging.getLogger(__name__)


class KeepsTheCommitInItself(ServiceStrategy):
    """Keeps the location of the new metadata file in the object, which another thread uses, too."""

    def stage(self, base: Pointer | None, proposal: Proposal) -> Pointer:
        self.staged = f"{self.location}/metadata/{uuid4()}.metadata.json"
        self.file_system.put(self.staged, encode_metadata(proposal.metadata), PutMode.OVERWRITE)
        return Pointer(self.staged)


class GivesTheLastPointer(ServiceStrategy):
    """Reports the last pointer that any thread has made."""

    def stage(self, base: Pointer | None, proposal: Proposal) -> Pointer:
        self.staged = super().stage(base, proposal)
        return self.staged

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        outcome = super().commit(base, proposal)
        return Committed(self.staged) if isinstance(outcome, Committed) else outcome


class OneConnectionForAll(ServiceStrategy):
    """Sends the requests of all threads over one connection, and takes the next reply for its own."""

    def __init__(self, location: str, file_system: FileSystem, port: int) -> None:
        super().__init__(location, file_system, port)
        self.connection = socket.create_connection(("127.0.0.1", port), 1)

    def ask(self, do: str, **asked: Any) -> Any:
        return reply_over(self.connection, do=do, table=self.key, **asked)


class HangsAfterAFork(ServiceStrategy):
    """Asks in a thread that a forked process does not have."""

    suite: ClassVar[dict[str, Any]] = {"max_wait_seconds": 2.0}
    pool = ThreadPoolExecutor(1)

    def ask(self, do: str, **asked: Any) -> Any:
        return self.pool.submit(super().ask, do, **asked).result()


class LocksAllTablesOfTheProcess(ServiceStrategy):
    """Keeps other threads out by a lock, which a process that is forked meanwhile inherits as taken."""

    suite: ClassVar[dict[str, Any]] = {"max_wait_seconds": 2.0}
    lock = threading.Lock()

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        with self.lock:
            return super().commit(base, proposal)


class ForgetsTheCommitsOfItsParent(ServiceStrategy):
    """Deletes the staged files of commits under way in each forked process: it takes them for its own leftovers."""

    under_way: ClassVar[dict[int, tuple[FileSystem, str]]] = {}

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        self.under_way[id(proposal)] = self.file_system, new
        try:
            return super().swap_pointer(old, new, proposal)
        finally:
            self.under_way.pop(id(proposal), None)

    @classmethod
    def clean(cls) -> None:
        for system, location in cls.under_way.values():
            system.delete_many([location])
        cls.under_way.clear()


reset_after_fork(ForgetsTheCommitsOfItsParent.clean)


class NamesAreForked(ServiceStrategy):
    """Names files by random numbers, which a forked process draws again."""

    numbers = random.Random()

    def stage(self, base: Pointer | None, proposal: Proposal) -> Pointer:
        location = f"{self.location}/metadata/{self.numbers.getrandbits(64):x}.metadata.json"
        self.file_system.put(location, encode_metadata(proposal.metadata), PutMode.OVERWRITE)
        return Pointer(location)


class SecretInRepr(ServiceStrategy):
    """Shows its properties."""

    def __repr__(self) -> str:
        return f"SecretInRepr({self.location!r}, {self.properties!r})"


class SecretInError(ServiceStrategy):
    """Repeats its properties in the text of an error."""

    def read_pointer(self) -> str | None:
        try:
            return super().read_pointer()
        except StorageError as error:
            raise StorageError(f"no reply to a request with {self.properties}") from error


class SecretInCause(ServiceStrategy):
    """Lets the error of a library cause its own, with a text that holds the password."""

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        try:
            return bool(self.ask("swap", old=old, new=new))
        except OSError as error:
            lost = ConnectionError(f"lost: tcp://user:{self.properties.get('test.password')}@127.0.0.1")
            raise OutcomeUnknown(str(error)) from lost


class SecretInData(ServiceStrategy):
    """Attaches its properties to an error."""

    def read_pointer(self) -> str | None:
        try:
            return super().read_pointer()
        except StorageError as error:
            error.data["options"] = dict(self.properties)
            raise


class SecretInLog(ServiceStrategy):
    """Logs its properties for whoever looks for an error."""

    def read_pointer(self) -> str | None:
        _log.debug("asking with %s", self.properties)
        return super().read_pointer()


class SecretInCredentials(ServiceStrategy):
    """States its credentials with the password."""

    def credentials(self) -> str | None:
        return ", ".join(self.properties.values())


class LowerCaseKey(ServiceStrategy):
    """Keeps tables under names in lower case."""

    @property
    def key(self) -> str:
        return self.location.lower()


class NormalizedKey(ServiceStrategy):
    """Keeps tables under names in one form of Unicode."""

    @property
    def key(self) -> str:
        return unicodedata.normalize("NFC", self.location)


class DecodedKey(ServiceStrategy):
    """Keeps tables under names without escapes."""

    @property
    def key(self) -> str:
        return unquote(self.location)


class StrippedKey(ServiceStrategy):
    """Keeps tables under names without blanks at the ends."""

    @property
    def key(self) -> str:
        return "/".join(part.strip() for part in self.location.split("/"))


class DottedKey(ServiceStrategy):
    """Joins the parts of a name by dots."""

    @property
    def key(self) -> str:
        return self.location.replace("/", ".")


class PlainKey(ServiceStrategy):
    """Replaces each character that is neither a letter nor a digit."""

    @property
    def key(self) -> str:
        return "".join(each if each.isalnum() or each == "/" else "_" for each in self.location)


RACE = "test_threads_that_share_a_strategy_lose_no_update"
MIXED = "test_a_commit_is_not_mixed_with_one_of_another_thread"
FORKED = "test_a_forked_process_commits_with_the_strategy_of_its_parent"
FORKING = "test_a_process_that_is_forked_in_the_middle_of_a_commit_commits_to_another_table"
SECRET = "test_no_secret_of_the_properties_is_shown"
NAMES = "test_tables_at_similar_locations_are_different_tables"

MUTANTS: list[Mutant] = of(
    {
        KeepsTheCommitInItself: (MIXED, "took the other's file, pointer or reply"),
        GivesTheLastPointer: (RACE, "the pointer of one thread's commit names another's metadata"),
        OneConnectionForAll: (RACE, "a connection that threads use"),
        HangsAfterAFork: (FORKED, "another process did not end its call"),
        LocksAllTablesOfTheProcess: (FORKING, "another process did not end its call within 2 s"),
        ForgetsTheCommitsOfItsParent: (FORKING, "or it ends the commit, the lock or the connection of its parent"),
        NamesAreForked: (FORKED, "two commits have one metadata file"),
        SecretInRepr: (SECRET, "the secret of a property is in the `repr`"),
        SecretInError: (SECRET, "the secret of a property is in StorageError of"),
        SecretInCause: (SECRET, "the secret of a property is in ConnectionError of a commit"),
        SecretInData: (SECRET, "the secret of a property is in StorageError of"),
        SecretInLog: (SECRET, "the secret of a property is in the log of"),
        SecretInCredentials: (SECRET, "the secret of a property is in the result of `credentials()`"),
        LowerCaseKey: (NAMES, "tables at 'Orders' and 'orders' are one table"),
        NormalizedKey: (NAMES, "are one table"),
        DecodedKey: (NAMES, "tables at 'a b' and 'a%20b' are one table"),
        StrippedKey: (NAMES, "tables at 'end' and 'end ' are one table"),
        DottedKey: (NAMES, "tables at 'a.b' and 'a/b' are one table"),
        PlainKey: (NAMES, "are one table"),
    }
)
