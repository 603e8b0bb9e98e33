"""The suite that a file format must pass: types, nullability, evolution, positions, splits, metrics, damage.

An author subclasses it and gives the format; gaps are declared by type, and must then be refused on writing::

    class TestMyFormat(FileFormatSuite):
        unsupported = (VariantType,)
        small_blocks = {"write.my-format.block-rows": "100"}

        @pytest.fixture
        def file_format(self):
            return MyFormat()

With the environment variable ``ICEFIELD_SOAK`` the checks with random data run many times as long.
"""

from __future__ import annotations

from icefield.abc import FileFormat

from icefield_testing.contract_numbers import check_contract_number
from icefield_testing.formats import (
    DamageChecks,
    EvolutionChecks,
    LargeFileChecks,
    ManifestChecks,
    MetricsChecks,
    PositionChecks,
    ReadingChecks,
    SourceChecks,
    TypeChecks,
    WritingChecks,
)


class FileFormatSuite(
    TypeChecks,
    EvolutionChecks,
    ReadingChecks,
    PositionChecks,
    LargeFileChecks,
    MetricsChecks,
    WritingChecks,
    SourceChecks,
    DamageChecks,
):
    """Checks of ``icefield.abc.FileFormat``."""

    def test_the_plugin_states_its_contract_number(self, file_format: FileFormat) -> None:
        """If this fails, the ``Provider`` of the plugin states no ``contract``: any kernel loads it, fit or not."""
        check_contract_number(self.plugins(), "file-formats", type(file_format))


class ManifestFormatSuite(ManifestChecks, FileFormatSuite):
    """Checks of ``icefield.abc.ManifestFormat``: the checks of every file format, and of features for manifests."""
