"""Answers that never end."""

from __future__ import annotations

from collections.abc import Mapping

from endless_answers import EndlessAnswers
from icefield.abc import FileSystem
from icefield_s3.s3_file_system import S3FileSystem


class TestS3Endless(EndlessAnswers):
    prefix = "s3"
    root = "s3://bucket/folder"

    def made(self, url: str, more: Mapping[str, str]) -> FileSystem:
        given = {"s3.endpoint": url, "s3.region": "us-east-1", "s3.access-key-id": "k", "s3.secret-access-key": "s"}
        return S3FileSystem({**given, "s3.path-style-access": "true", **more})
