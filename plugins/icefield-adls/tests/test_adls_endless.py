"""Answers that never end."""

from __future__ import annotations

from collections.abc import Mapping

from endless_answers import EndlessAnswers
from icefield.abc import FileSystem
from icefield_adls.adls_file_system import AdlsFileSystem
from servers.azure import Azure


class TestAdlsEndless(EndlessAnswers):
    prefix = "adls"
    root = "az://container/folder"
    refusal = r"more than [\d,]+ bytes|does not send the range"

    def made(self, url: str, more: Mapping[str, str]) -> FileSystem:
        return AdlsFileSystem({**Azure(url).properties, **more})
