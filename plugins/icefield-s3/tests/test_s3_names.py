"""Which names of buckets are taken, which lead to other hosts, and which are none."""

from __future__ import annotations

import pytest
from icefield.errors import FileMissing, LocationRefused
from icefield_s3.locations import split_key

POINT = "arn:aws:s3:eu-central-1:123456789012:accesspoint:reports"
LAMBDA = "arn:aws:s3-object-lambda:eu-central-1:123456789012:accesspoint:redacting"
OUTPOST = "arn:aws-cn:s3-outposts:cn-north-1:123456789012:outpost:op-01ac5d28a6a232904:accesspoint:reports"
REGIONLESS = "arn:aws:s3::123456789012:accesspoint:mfzwi23gnjvgw.mrap"
ALIAS = "test-o0000000000000000000000000000000000000000000000000000e0b0--op-s3"


@pytest.mark.parametrize(
    "bucket",
    [
        "abc",
        "a.b-c.d",
        "1bucket",
        "Old_Bucket.With-Capitals",
        "a" * 255,
        "table--use1-az4--x-s3",
        "point-1a2b3c-s3alias",
    ],
)
def test_names_of_buckets_of_directory_buckets_and_of_aliases_are_taken_to_the_letter(bucket: str) -> None:
    assert split_key(f"s3://{bucket}/a//b%20c", {}) == (bucket, "a//b%20c")
    assert split_key(f"s3a://{bucket}", {}) == (bucket, "")


@pytest.mark.parametrize(
    "bucket",
    ["-a", ".a", "_a", "a.", "a..b", "a" * 256, "a:80", "user@a", "a~b", "[::1]", "127.0.0.1:80", "$a", f"{POINT}:x",
     "arn:aws:s3:::bucket", "arn:aws:s3:eu:12345:accesspoint:x", "arn:aws:sns:eu:123456789012:accesspoint:x",
     "arn:aws:s3:evil.example:123456789012:accesspoint:x", "arn:aws:s3:eu:123456789012:accesspoint:"],
)  # fmt: skip
def test_what_is_no_name_of_a_bucket_is_refused(bucket: str) -> None:
    with pytest.raises(LocationRefused, match="no name of a bucket"):
        split_key(f"s3://{bucket}/k", {"warehouse": f"s3://{bucket}/wh"})


@pytest.mark.parametrize("bucket", [POINT, LAMBDA, OUTPOST, REGIONLESS, ALIAS])
def test_access_points_and_outposts_lead_to_hosts_of_their_own_and_have_to_be_named(bucket: str) -> None:
    other = {"warehouse": "s3://bucket/wh", "location.credentials-for": f"s3://{bucket}-2, gs://{bucket}"}
    for properties in ({}, other):
        with pytest.raises(LocationRefused, match=r"does not name.*location\.credentials-for"):
            split_key(f"s3://{bucket}/k", properties)
    for named in (
        {"warehouse": f"s3://{bucket}/wh"},
        {"location.allowed-roots": f"s3a://{bucket}/a, s3://bucket"},
        {"location.map.s3://old": f"s3://{bucket}/x"},
        {"location.credentials-for": f"s3://{bucket}"},
    ):
        assert split_key(f"s3://{bucket}/k", named) == (bucket, "k")


def test_a_location_without_a_bucket_is_no_file() -> None:
    for location in ("s3:///k", "s3:/k"):
        with pytest.raises(FileMissing, match="bucket/path"):
            split_key(location, {})
