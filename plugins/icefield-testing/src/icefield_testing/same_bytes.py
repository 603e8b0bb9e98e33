"""Comparison of the bytes of files, for checks that read megabytes."""

from __future__ import annotations


def check_bytes(found: bytes | None, data: bytes, what: str) -> None:
    """Check that ``found`` has the bytes of ``data``. The note starts with ``what`` and names the first difference.

    A plain ``assert found == data`` lets pytest compare both line by line. Where the environment has ``CI`` set, it
    does so at any length, which takes minutes for 20 MB.

    Raises:
        AssertionError: the bytes differ, or ``found`` is None.
    """
    if found is None:
        raise AssertionError(f"{what} is no file")
    if len(found) != len(data):
        raise AssertionError(f"{what} has {len(found):,} bytes, not {len(data):,}")
    if found != data:
        at = next(at for at, (one, other) in enumerate(zip(found, data, strict=True)) if one != other)
        raise AssertionError(f"{what} has other bytes from byte {at:,} on: {found[at : at + 16]!r}")
