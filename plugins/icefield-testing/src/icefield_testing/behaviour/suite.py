"""One suite for every catalog and commit strategy: it checks the behaviour that users of a catalog may rely on.

An author subclasses it and gives a catalog::

    class TestMyCatalog(TableBehaviourSuite):
        @pytest.fixture
        def catalog(self, tmp_path):
            with load_catalog("test", type="mine", uri="...", warehouse=f"file://{tmp_path}") as catalog:
                yield catalog

The catalog need not be empty, and may serve many tests: each works in a namespace of its own. An ability that the
backend leaves out of ``abilities`` is a declared gap. Its operations must be refused with one typed error before
anything changes; the suite checks that instead.
"""

from __future__ import annotations

from icefield_testing.behaviour.changes import ChangeChecks
from icefield_testing.behaviour.creation import CreationChecks
from icefield_testing.behaviour.files import FileChecks
from icefield_testing.behaviour.names import NameChecks
from icefield_testing.behaviour.namespaces import NamespaceChecks
from icefield_testing.behaviour.races import RaceChecks
from icefield_testing.behaviour.returns import ReturnChecks
from icefield_testing.behaviour.travel import TravelChecks


class TableBehaviourSuite(
    NamespaceChecks, CreationChecks, NameChecks, ChangeChecks, ReturnChecks, FileChecks, RaceChecks, TravelChecks
):
    """Checks of ``icefield.Catalog`` over one backend, one commit strategy and one storage."""
