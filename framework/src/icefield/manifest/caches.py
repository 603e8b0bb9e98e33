"""How much the process keeps of decoded metadata."""

from __future__ import annotations

from icefield.manifest.reader import MANIFESTS


def resize_caches(max_bytes: int) -> None:
    """Let decoded manifests take up to this many bytes (256 MiB by default). Zero keeps none.

    Raises ``InvalidArgument`` below zero.
    """
    MANIFESTS.resize(max_bytes)
