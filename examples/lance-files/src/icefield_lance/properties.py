"""The table property of Lance files."""

from __future__ import annotations

from typing import Final

from icefield.metadata import Property

BLOCK_ROWS: Final = Property("write.lance.block-rows", int, 65_536, "Rows that a split reads at least.", minimum=1)
