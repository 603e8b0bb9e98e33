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

# See docs/decisions/0037.

from __future__ import annotations

from icefield_testing.formats import (
    DamageChecks,
    EvolutionChecks,
    LargeFileChecks,
    ManifestChecks,
    MetricsChecks,
    PositionChecks,
    ReadingChecks,
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
    DamageChecks,
):
    """Checks of ``icefield.abc.FileFormat``."""


class ManifestFormatSuite(ManifestChecks, FileFormatSuite):
    """Checks of ``icefield.abc.ManifestFormat``: those of any file format, and of what manifests need."""
