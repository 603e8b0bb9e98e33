"""The suite that a file system must pass.

An author subclasses it, gives two fixtures and two raw helpers that bypass the file system, so that a bug cannot hide
a bug::

    class TestMyStore(FileSystemSuite):
        @pytest.fixture
        def file_system(self):
            return MyStore({"my.endpoint": "http://127.0.0.1:9000"})

        @pytest.fixture
        def root(self):
            return f"my://bucket/{uuid4()}"

        def raw_get(self, location): ...   # bytes, or None when nothing is there
        def raw_put(self, location, data): ...
"""

from __future__ import annotations

from icefield.abc import FileSystem

from icefield_testing.contract_numbers import check_contract_number
from icefield_testing.file_systems import (
    AtomicChecks,
    ForkChecks,
    InputFileChecks,
    LeftoverChecks,
    ListingChecks,
    LocalFileChecks,
    PlaceChecks,
    ReadingChecks,
    RivalChecks,
    SilentStoreChecks,
    SpellingChecks,
    StreamChecks,
    ValueChecks,
)


class FileSystemSuite(
    ReadingChecks,
    SpellingChecks,
    InputFileChecks,
    StreamChecks,
    AtomicChecks,
    RivalChecks,
    ListingChecks,
    LeftoverChecks,
    LocalFileChecks,
    ForkChecks,
    PlaceChecks,
    SilentStoreChecks,
    ValueChecks,
):
    """Checks of ``icefield.abc.FileSystem``."""

    def test_the_plugin_states_its_contract_number(self, file_system: FileSystem) -> None:
        """If this fails, the ``Provider`` of the plugin states no ``contract``: any kernel loads it, fit or not."""
        check_contract_number(self.plugins(), "file-systems", type(file_system))
