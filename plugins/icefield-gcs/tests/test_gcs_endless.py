"""Answers that never end."""

from __future__ import annotations

from collections.abc import Mapping

from endless_answers import EndlessAnswers
from icefield.abc import FileSystem
from icefield_gcs.gcs_file_system import GcsFileSystem


class TestGcsEndless(EndlessAnswers):
    prefix = "gcs"
    root = "gs://bucket/folder"

    def made(self, url: str, more: Mapping[str, str]) -> FileSystem:
        return GcsFileSystem({"gcs.service.host": url, "gcs.no-auth": "true", **more})
