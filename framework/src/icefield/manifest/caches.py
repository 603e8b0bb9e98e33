"""The process's caches of decoded metadata, all at once."""

from __future__ import annotations

from icefield.manifest.manifest_list import MANIFEST_LISTS
from icefield.manifest.reader import MANIFESTS


def clear_caches() -> None:
    """Drop every decoded manifest and manifest list of this process. Only memory is freed; results never change."""
    MANIFESTS.clear()
    MANIFEST_LISTS.clear()


def resize_caches(max_bytes: int) -> None:
    """Let decoded manifests take up to this many bytes (256 MiB unless told). Zero keeps none.

    Raises ``InvalidArgument`` below zero.
    """
    MANIFESTS.resize(max_bytes)
