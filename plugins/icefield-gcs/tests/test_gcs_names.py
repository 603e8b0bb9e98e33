"""Which names of buckets are taken, and which are none."""

from __future__ import annotations

import pytest
from icefield.errors import FileMissing, LocationRefused
from icefield_gcs.gcs_file_system import GcsFileSystem

SYSTEM = GcsFileSystem({"gcs.oauth2.token": "never-sent"})


@pytest.mark.parametrize("bucket", ["abc", "lake.example.com", "a_b-c", "1_2", "a__b", "a-.b", "Old_Name", "a" * 222])
def test_a_name_of_a_bucket_has_dots_underscores_and_dashes(bucket: str) -> None:
    for scheme in ("gs", "gcs"):
        assert SYSTEM.path(f"{scheme}://{bucket}/a//b%20c#1") == f"{bucket}/a//b%20c#1"


@pytest.mark.parametrize(
    "bucket",
    ["a..b", ".a", "a.", "_a", "-a", "a" * 223, "a:80", "user@a", "a~b", "[::1]", "127.0.0.1:80", "$a"],
)
def test_what_is_no_name_of_a_bucket_is_refused_by_every_method(bucket: str) -> None:
    location = f"gs://{bucket}/k"
    for call in (SYSTEM.stat, SYSTEM.open_input, SYSTEM.open_output, lambda at: [*SYSTEM.list_files(at)], SYSTEM.path):
        with pytest.raises(LocationRefused, match="no name of a bucket"):
            call(location)
    with pytest.raises(LocationRefused, match="no name of a bucket"):
        SYSTEM.delete_many(["gs://fine/k", location])


def test_a_location_without_a_bucket_is_no_file() -> None:
    with pytest.raises(FileMissing, match="bucket/path"):
        SYSTEM.stat("gs:///k")
