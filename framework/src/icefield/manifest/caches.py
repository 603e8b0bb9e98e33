"""How much the process keeps of decoded metadata."""

from __future__ import annotations

from icefield.errors import InvalidArgument
from icefield.manifest.fetching import FILES, FILES_MAX_BYTES
from icefield.manifest.reader import MANIFESTS


def resize_caches(max_bytes: int) -> None:
    """Let decoded manifests take up to this many bytes (256 MiB by default). Zero keeps none.

    In addition, the stored bytes of manifests take up to an eighth of it, and 32 MiB at most.

    Raises ``InvalidArgument`` below zero.
    """
    if max_bytes < 0:
        raise InvalidArgument(f"a cache cannot hold {max_bytes} bytes")
    MANIFESTS.resize(max_bytes)
    FILES.resize(min(FILES_MAX_BYTES, max_bytes // 8))
