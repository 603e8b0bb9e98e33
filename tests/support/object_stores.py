"""Checks of the plugins of all object stores beyond the kit: schemes, abilities, and shared clients."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from icefield import Plugins
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import StorageError
from icefield.toolkit import FsspecFileSystem


def failures(system: FileSystem, location: str, *more: Callable[[], Any]) -> list[StorageError]:
    """Return the error of each operation on a store out of reach; each error names the location."""
    mode = PutMode.CREATE if FileSystemAbility.ATOMIC_CREATE in system.abilities else PutMode.OVERWRITE
    calls: tuple[Callable[[], Any], ...] = (
        lambda: system.put(location, b"x", mode),
        lambda: system.open_input(location),
        lambda: list(system.list_files(location)),
        lambda: system.delete_many([location]),
        *more,
    )
    found = []
    for call in calls:
        with pytest.raises(StorageError, match=location) as failed:
            call()
        found.append(failed.value)
    return found


def said_by(*errors: StorageError) -> str:
    """Return all text of errors: their tracebacks, with their causes, and their data."""
    return "".join(part for each in errors for part in (*traceback.format_exception(each), repr(each.data)))


class EntityTags:
    """A check for the suite of a store: subclass it beside ``FileSystemSuite``."""

    raw_put: Callable[[str, bytes], None]

    def test_a_file_has_the_entity_tag_of_the_store(self, file_system: FileSystem, root: str) -> None:
        self.raw_put(f"{root}/f", b"x")
        etag = file_system.stat(f"{root}/f").etag
        assert etag, "the store gives one"
        assert '"' not in etag
        assert [info.etag for info in file_system.list_files(root)] == [etag]


class ObjectStoreTests:
    """A subclass names the file system; ``given`` are properties with which a client is made without a request."""

    file_system: ClassVar[type[FsspecFileSystem]]
    schemes: ClassVar[tuple[str, ...]]
    sdk: ClassVar[frozenset[str]]
    given: ClassVar[Mapping[str, str]]
    other: ClassVar[Mapping[str, str]]

    @pytest.fixture
    def used(self) -> tuple[Mapping[str, str], str]:
        """Properties for a separate client, and code that a process runs on ``system`` before it forks."""
        return {**self.given, **self.other}, "system.fs"

    def test_each_scheme_leads_to_the_file_system(self) -> None:
        plugins = Plugins.installed()
        assert {scheme: plugins.file_system(scheme) for scheme in self.schemes} == dict.fromkeys(
            self.schemes, self.file_system
        )

    def test_it_creates_and_lists_and_does_not_rename(self) -> None:
        expected = {FileSystemAbility.ATOMIC_CREATE, FileSystemAbility.LIST, FileSystemAbility.REMOTE}
        assert self.file_system({}).abilities == expected

    def test_file_systems_of_the_same_properties_share_a_client(self) -> None:
        one = self.file_system({**self.given, "other.property": "1"})
        two = pickle.loads(pickle.dumps(self.file_system(self.given)))
        assert one.fs is two.fs
        assert one.fs is not self.file_system({**self.given, **self.other}).fs

    def test_listing_plugins_imports_no_sdk(self) -> None:
        code = (
            "import sys, icefield; icefield.Plugins.installed().listing();"
            f"print(sorted({set(self.sdk)!r} & set(sys.modules)))"
        )
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == "[]"

    def test_a_client_that_nobody_holds_is_let_go(self, used: tuple[Mapping[str, str], str]) -> None:
        properties, use = used
        system = self.file_system(properties)
        exec(use, {"system": system})
        client = weakref.ref(system.fs)
        assert client() is not None
        del system
        gc.collect()
        assert client() is None

    def test_a_forked_process_ends_without_an_error(self, used: tuple[Mapping[str, str], str]) -> None:
        properties, use = used
        kind = self.file_system
        code = (
            f"import os, sys; from {kind.__module__} import {kind.__qualname__} as F;"
            f"system = F({dict(properties)!r}); {use}; child = os.fork();"
            "sys.exit(0 if child == 0 else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
