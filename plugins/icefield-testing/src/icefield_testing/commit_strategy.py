"""The suite that a commit strategy must pass.

An author subclasses it and states how to build the strategy; the suite does everything else::

    class TestMyStrategy(CommitStrategySuite):
        @pytest.fixture
        def file_system(self): ...      # a file system the strategy is safe on

        @pytest.fixture
        def location(self): ...         # a fresh location for one table

        def strategy(self, file_system, location):
            return MyStrategy(("db", "t"), location, file_system, {})

Every call of ``strategy`` stands for another process that works on the same table.
"""

from __future__ import annotations

from icefield.abc import FileSystem

from icefield_testing.contract_numbers import check_contract_number
from icefield_testing.strategies import (
    DropChecks,
    FaultChecks,
    LostReplyChecks,
    RacingChecks,
    SharingChecks,
    ShowingChecks,
    SilentServiceChecks,
    SingleWriterChecks,
)


class CommitStrategySuite(
    SingleWriterChecks,
    RacingChecks,
    FaultChecks,
    LostReplyChecks,
    DropChecks,
    SharingChecks,
    ShowingChecks,
    SilentServiceChecks,
):
    """Checks of ``icefield.abc.CommitStrategy``."""

    def test_the_plugin_states_its_contract_number(self, file_system: FileSystem, location: str) -> None:
        """If this fails, the ``Provider`` of the plugin states no ``contract``: any kernel loads it, fit or not."""
        check_contract_number(self.plugins(), "commit-strategies", type(self.strategy(file_system, location)))
