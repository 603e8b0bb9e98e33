"""The memory that checks of a table hold for each of its files."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from icefield.manifest import DataFile, DataFileContent, resize_caches
from icefield_maintenance.doctor import Ledger, Subject
from icefield_maintenance.doctor.tables import live_checks, maintenance_checks
from icefield_maintenance.doctor.tables.subject import FILE_COLUMNS, is_data
from tables import memory_catalog, new_table

FILES = 1000
"""The number of files of one commit."""
COMMITS = 32


def _heads(subject: Subject) -> None:
    ledger = Ledger(live_checks.RULES.rules)
    live_checks.examine_heads(subject, ledger)
    assert not ledger.locations(live_checks.RULES.rules)


def _maintenance(subject: Subject) -> None:
    maintenance_checks.examine_maintenance(subject, Ledger(maintenance_checks.RULES.rules))


def _sample(subject: Subject) -> None:
    assert len([*subject.files(is_data, 16)]) == 16


@pytest.fixture(scope="module", params=["2", "3"])
def many_files(request: pytest.FixtureRequest) -> Iterator[Subject]:
    """A table of 32,000 files, and no cache."""
    table = new_table(["kind"], catalog=memory_catalog(), **{"format-version": request.param})
    for _ in range(COMMITS):
        files = [
            DataFile(
                content=DataFileContent.DATA,
                file_path=f"{table.location()}/data/{uuid4()}.parquet",
                file_format="parquet",
                partition=("a",),
                record_count=10,
                file_size_in_bytes=1000,
            )
            for _ in range(FILES)
        ]
        with table.transaction() as tx:
            tx.update_snapshot().fast_append().append_fresh(files).commit()
    resize_caches(0)
    yield Subject(table.metadata, table.io, table.metadata_location)
    resize_caches()


def _peak(work: Callable[[Subject], object], subject: Subject) -> int:
    work(subject)
    tracemalloc.start()
    work(subject)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
def test_checks_hold_few_bytes_of_each_file(many_files: Subject) -> None:
    read = _peak(lambda subject: [len(entries) for entries in subject.readable(FILE_COLUMNS)], many_files)
    most = {_heads: 12 if many_files.metadata.format_version < 3 else 32, _sample: 12, _maintenance: 4}
    held = {check.__name__: (_peak(check, many_files) - read) / (COMMITS * FILES) for check in most}
    assert all(held[check.__name__] <= bytes_ for check, bytes_ in most.items()), held
