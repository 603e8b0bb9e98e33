"""What the plugins of all object stores have in common beyond the kit: schemes, abilities, and shared clients."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import weakref
from collections.abc import Mapping
from typing import ClassVar

import pytest
from icefield import Plugins
from icefield.abc import FileSystemAbility
from icefield.toolkit import FsspecFileSystem


class ObjectStoreTests:
    """A subclass names the file system; ``given`` are properties with which a client is made without a request."""

    file_system: ClassVar[type[FsspecFileSystem]]
    schemes: ClassVar[tuple[str, ...]]
    sdk: ClassVar[frozenset[str]]
    given: ClassVar[Mapping[str, str]]
    other: ClassVar[Mapping[str, str]]

    @pytest.fixture
    def used(self) -> tuple[Mapping[str, str], str]:
        """Properties of a client of its own, and what a process does with ``system`` before it forks."""
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
