"""The base of the checks: a catalog, the same catalog as another process sees it, and tables to test with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, FileIO, Table
from icefield.abc import (
    CatalogBackend,
    CommitStrategy,
    Committed,
    Conflict,
    Current,
    FileSystemAbility,
    Pointer,
    Proposal,
)
from icefield.commit import TableHandle, load_table
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import VersionedStrategy
from icefield.types import DoubleType, LongType, NestedField, StringType

from icefield_testing.base import Suite

T = TypeVar("T")

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "kind", StringType()),
    NestedField(3, "value", DoubleType()),
)


class BehaviourChecks(Suite):
    """The fixture that an author provides, and helpers."""

    table_properties: ClassVar[Mapping[str, str]] = {}
    """Properties of every table that a check creates, such as ``write.format.default``."""

    one_process: ClassVar[bool] = False
    """Whether the tables live in this process, such as in memory: then nothing is tried with other processes."""

    racers: ClassVar[int] = 6
    """How many threads race."""

    retry_properties: ClassVar[Mapping[str, str]] = {
        "commit.retry.num-retries": "200",
        "commit.retry.min-wait-ms": "5",
        "commit.retry.max-wait-ms": "2000",
    }
    """How tables retry: enough for every racer to get through."""

    @pytest.fixture
    def catalog(self) -> Catalog:
        """The catalog under test."""
        raise pytest.UsageError("give a fixture `catalog` that returns the catalog under test")

    def another(self, catalog: Catalog, **properties: str) -> Catalog:
        """The same catalog as another process would open it, with additional properties."""
        given = {**catalog.properties, **properties}
        return Catalog(type(backend_of(catalog))(catalog.name, given, FileIO(catalog.io.plugins, given)))

    def in_another_process(self, catalog: Catalog) -> Catalog:
        """The same catalog, opened by a process that was forked from this one."""
        return self.another(catalog)

    def is_metastore(self, catalog: Catalog) -> bool:
        """Whether a pointer determines the current metadata file, rather than the file's name."""
        name = (self.space(catalog), "probe")
        return not isinstance(backend_of(catalog).strategy(name), VersionedStrategy)

    # -- things to work on

    def fresh(self, prefix: str = "n") -> str:
        """An unused name that every catalog can hold."""
        return f"{prefix}{uuid4().hex[:12]}"

    def space(self, catalog: Catalog) -> str:
        """A new namespace."""
        name = self.fresh()
        catalog.create_namespace(name)
        return name

    def create(self, catalog: Catalog, name: str | None = None, partition_spec: Any = None, **properties: str) -> Table:
        """A new table, in its own namespace unless ``name`` is given; underscores in property names become dashes."""
        given = {key.replace("_", "-"): value for key, value in properties.items()}
        return catalog.create_table(
            name or f"{self.space(catalog)}.t",
            SCHEMA,
            partition_spec=partition_spec,
            properties={**self.retry_properties, **self.table_properties, **given},
        )

    def held_again(self, catalog: Catalog, table: Table) -> Table:
        """The same table, loaded as another process would."""
        return self.another(catalog).load_table(table.name())

    def race(self, *steps: Callable[[], T]) -> list[T | Exception]:
        """Run all steps at the same time, each in a thread, and return the result or error of each."""
        barrier = Barrier(len(steps))

        def run(step: Callable[[], T]) -> T | Exception:
            barrier.wait(60)
            try:
                return step()
            except Exception as error:
                return error

        with ThreadPoolExecutor(len(steps)) as pool:
            return list(pool.map(run, steps))

    def files(self, catalog: Catalog, location: str) -> set[str]:
        """Every file below a location; skips the test where the store cannot list."""
        if FileSystemAbility.LIST not in catalog.io.file_system(location).abilities:
            pytest.skip("the file system declares no LIST")
        return {info.location for info in catalog.io.list_files(location)}


def backend_of(catalog: Catalog) -> CatalogBackend:
    """The backend that a catalog wraps."""
    return catalog.backend


def rows(ids: Iterable[int], kind: str | None = "a", value: float = 1.0) -> pa.Table:
    """Rows of ``SCHEMA``."""
    numbers = list(ids)
    columns = [numbers, [kind] * len(numbers), [value] * len(numbers)]
    arrow = schema_to_arrow(SCHEMA)
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow)


def ids(table: Table, *args: Any, **kwargs: Any) -> list[int]:
    """The ids in the result of a scan, sorted."""
    found: list[int] = table.scan(*args, **kwargs).to_arrow().column("id").to_pylist()
    return sorted(found)


class _Interrupted(CommitStrategy):
    """A strategy that calls a function just before each commit."""

    def __init__(self, inner: CommitStrategy, before: Callable[[], object]) -> None:
        super().__init__(inner.table, inner.location, inner.file_system, inner.properties)
        self._inner = inner
        self._before = before

    def load(self) -> Pointer | Current | None:
        return self._inner.load()

    def commit(self, base: Pointer | None, proposal: Proposal) -> Committed | Conflict:
        self._before()
        return self._inner.commit(base, proposal)

    def drop(self) -> None:
        self._inner.drop()

    def purge(self) -> None:
        self._inner.purge()


def interrupted(catalog: Catalog, table: Table, before: Callable[[], object]) -> Table:
    """The current version of a table; ``before`` is called before each of its commits."""
    strategy = _Interrupted(backend_of(catalog).strategy(table.name()), before)
    handle = TableHandle(table.name(), table.io, strategy)
    state = load_table(handle)
    assert state is not None
    return Table(handle, state)
