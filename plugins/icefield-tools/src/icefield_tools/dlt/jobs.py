"""The job that loads a chain of tables, once all its files are there."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dlt.common.destination.client import RunnableLoadJob
from dlt.common.storages.load_storage import ParsedLoadJobFileName
from dlt.destinations.job_impl import ReferenceFollowupJobRequest

from icefield_tools.dlt.errors import as_dlt_errors

if TYPE_CHECKING:
    from icefield_tools.dlt.client import IcefieldClient


class ChainLoadJob(RunnableLoadJob):
    """Loads the files of a root table and of its nested tables: one commit, where the catalog can."""

    _job_client: IcefieldClient

    def run(self) -> None:
        """Commit the files. A chain that this load has committed already is left as it is."""
        files: dict[str, list[str]] = defaultdict(list)
        for path in ReferenceFollowupJobRequest.resolve_references(self._file_path):
            files[ParsedLoadJobFileName.parse(path).table_name].append(path)
        marks = {"dlt.load-id": self._load_id, "dlt.schema": self._schema.name, "dlt.job-id": self.job_id()}
        with as_dlt_errors():
            self._job_client.load_chain(self.load_table_name, files, marks)
