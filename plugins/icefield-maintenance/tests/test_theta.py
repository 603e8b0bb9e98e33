"""Distinct values of a column, by the blobs of a statistics file."""

from __future__ import annotations

import struct

import pytest
from icefield.errors import IcefieldError, InvalidFile, UnsupportedFeature
from icefield.puffin import Blob, BlobType
from icefield_maintenance.theta import distinct_values, theta_estimate


def sketch(longs: int, flags: int, *, count: int = 0, theta: int | None = None, hashes: int = 0) -> bytes:
    head = bytes([longs, 3, 3, 0, 0, flags, 0, 0])
    if longs > 1:
        head += struct.pack("<if", count, 1.0)
    if longs > 2:
        head += struct.pack("<q", theta or 0)
    return head + bytes(8 * hashes)


@pytest.mark.spec("PUF-07")
def test_the_estimate_follows_from_the_header_of_a_compact_sketch() -> None:
    assert theta_estimate(sketch(1, 0x1E), "s") == 0.0
    assert theta_estimate(sketch(1, 0x3A, hashes=1), "s") == 1.0
    assert theta_estimate(sketch(2, 0x1A, count=0), "s") == 0.0
    assert theta_estimate(sketch(2, 0x1A, count=7, hashes=7), "s") == 7.0
    assert round(theta_estimate(sketch(3, 0x1A, count=100, theta=1 << 61, hashes=100), "s")) == 400


@pytest.mark.spec("PUF-07")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", InvalidFile),
        (sketch(2, 0x1A, count=7, hashes=6), InvalidFile),
        (sketch(2, 0x1A, count=-1), InvalidFile),
        (sketch(3, 0x1A, count=1, theta=0, hashes=1), InvalidFile),
        (sketch(1, 0x3A), InvalidFile),
        (sketch(5, 0x1A, hashes=9), InvalidFile),
        (bytes([1, 4, 3, 0, 0, 0x1E, 0, 0]), UnsupportedFeature),
        (bytes([1, 3, 2, 0, 0, 0x1E, 0, 0]), UnsupportedFeature),
    ],
)
def test_sketches_that_are_none_are_refused(data: bytes, kind: type[IcefieldError]) -> None:
    with pytest.raises(kind):
        theta_estimate(data, "s")


@pytest.mark.spec("PUF-07")
@pytest.mark.parametrize(("told", "number"), [("12", 12), ("", None), ("-1", None), ("9" * 30, None), ("x", None)])
def test_the_number_is_read_without_the_sketch(told: str, number: int | None) -> None:
    blob = Blob(
        type=BlobType.THETA_SKETCH,
        fields=(1,),
        snapshot_id=1,
        sequence_number=1,
        offset=4,
        length=9,
        properties={"ndv": told},
    )
    assert distinct_values(blob) == number
