"""Names as Spark reads them."""

from __future__ import annotations

import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quoted(*parts: str) -> str:
    """A name as Spark reads it, whatever characters are in it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def spelt(*parts: str) -> str:
    """A name as Spark reads it, with quotes around those parts alone that need them."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in parts)
