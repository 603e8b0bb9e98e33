"""Data that leave the process: pickled work and moved tables, but never credentials."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest
from icefield import Catalog, Table, open_table
from icefield.errors import IcefieldError, NotSupportedByCatalog
from icefield.scan import read_tasks
from icefield.writing import write_batches

from icefield_testing.behaviour.base import SCHEMA, BehaviourChecks, ids, rows

_PLANTED = "planted-5ecret-of-the-kit"
_SECRET_KEYS = re.compile(r"(?i)secret|password|token|credential|account-key|connection-string|sas|access-key")


class TravelChecks(BehaviourChecks):
    """Checks of data that go to other processes or places."""

    # -- pickled

    def test_a_scan_is_read_elsewhere(self, catalog: Catalog) -> None:
        """If this fails, tasks hold connections, or the file IO does not come back with its properties."""
        table = self.create(catalog, partition_spec=["kind"])
        table.append(rows([1, 2], "a"))
        table.append(rows([3, 4], "b"))
        scan = table.scan("id != 2", selected_fields=("id",))
        sent = pickle.dumps(([*scan.plan_files()], scan.context))
        tasks, context = pickle.loads(sent)
        found = [row["id"] for batch in read_tasks(tasks, context) for row in batch.to_pylist()]
        assert sorted(found) == [1, 3, 4]

    def test_rows_written_elsewhere_are_committed_here(self, catalog: Catalog) -> None:
        """If this fails, the write context or the data files that come back do not pickle."""
        table = self.create(catalog, partition_spec=["kind"])
        context = pickle.loads(pickle.dumps(table.write_context()))
        files = pickle.loads(pickle.dumps(write_batches(context, rows([1, 2]).to_batches(), task_id=7)))
        with table.transaction() as tx:
            tx.append_files(files)
        assert ids(self.held_again(catalog, table)) == [1, 2]

    def test_the_file_io_of_a_table_pickles(self, catalog: Catalog) -> None:
        """If this fails, a file system holds an open connection, and not the properties to make one."""
        table = self.create(catalog)
        again = pickle.loads(pickle.dumps(table.io))
        assert again.read(table.metadata_location) == table.io.read(table.metadata_location)

    def test_a_table_pickles(self, catalog: Catalog) -> None:
        """If this fails, the strategy holds a connection: give it a ``__reduce__`` that keeps what makes one."""
        table = self.create(catalog)
        table.append(rows([1]))
        again = pickle.loads(pickle.dumps(table))
        assert again.metadata == table.metadata
        again.append(rows([2]))
        assert ids(table.refresh()) == [1, 2]

    # -- moved

    def test_a_table_that_was_moved_opens_through_a_location_map(self, catalog: Catalog) -> None:
        """If this fails, a location is opened past the file IO, which knows the map."""
        table, old, new = self._moved(catalog)
        moved = {**catalog.properties, f"location.map.{old}": new}
        opened = open_table(new + table.metadata_location[len(old) :], moved, plugins=catalog.io.plugins)
        assert ids(opened) == [1, 2]
        found = self.another(catalog, **{f"location.map.{old}": new}).load_table(table.name())
        assert ids(found, "kind = 'b'") == [2]

    def test_a_table_that_was_moved_is_changed_where_it_is_now(self, catalog: Catalog) -> None:
        """If this fails, the strategy writes past the map: give it ``io.storage(location)`` as its file system."""
        table, old, new = self._moved(catalog)
        before = self.files(catalog, new)
        holder = self.another(catalog, **{f"location.map.{old}": new})
        found = holder.load_table(table.name())
        found.append(rows([3]))
        found.delete("id = 1")
        assert ids(found) == [2, 3]
        assert ids(self.another(catalog, **{f"location.map.{old}": new}).load_table(table.name())) == [2, 3]
        assert not self.files(catalog, old), "files were written where the table no longer is"
        assert any(location.endswith(".metadata.json") for location in self.files(catalog, new) - before)
        holder.drop_table(table.name())
        assert not holder.table_exists(table.name())

    def test_a_metadata_file_opens_without_the_catalog_and_read_only(self, catalog: Catalog) -> None:
        """If this fails, a table that nobody guards can be changed."""
        table = self.create(catalog)
        table.append(rows([1]))
        opened = open_table(table.metadata_location, catalog.properties, plugins=catalog.io.plugins)
        assert opened.metadata == table.metadata
        assert ids(opened) == [1]
        for change in (lambda: opened.append(rows([2])), lambda: opened.set_properties(a="1"), opened.refresh):
            with pytest.raises(NotSupportedByCatalog):
                change()
        assert ids(self.held_again(catalog, table)) == [1]

    def test_a_location_that_is_not_allowed_is_refused(self, catalog: Catalog) -> None:
        """If this fails, the backend or the strategy opens files past the file IO's allow-lists."""
        table = self.create(catalog)
        table.append(rows([1]))
        with pytest.raises((IcefieldError, PermissionError)):
            ids(self.another(catalog, **{"location.allowed-roots": "memory://nowhere/at-all"}).load_table(table.name()))

    def _moved(self, catalog: Catalog) -> tuple[Table, str, str]:
        """A table with the ids 1 and 2 whose files were moved, with the old and the new location."""
        table = self.create(catalog, partition_spec=["kind"])
        table.append(rows([1], "a"))
        table.append(rows([2], "b"))
        old, new = table.location(), f"{table.location()}-moved"
        for location in self.files(catalog, old):
            with catalog.io.open_output(new + location[len(old) :]) as sink:
                sink.write(catalog.io.read(location))
        catalog.io.delete_many(self.files(catalog, old))
        return table, old, new

    # -- secrets

    def test_no_credential_is_shown(self, catalog: Catalog) -> None:
        """If this fails, a ``repr`` prints properties: define one that names the thing and nothing else."""
        planted = self.another(catalog, **{"kit.password": _PLANTED})
        table = self.create(planted)
        table.append(rows([1]))
        scan = table.scan()
        shown: list[Any] = [planted, table, table.io, scan, scan.context, table.write_context(), *scan.plan_files()]
        shown += [planted.backend.strategy(table.name()), planted.backend, table.io.file_system(table.location())]
        for each in shown:
            self._check_silent(catalog, f"{each!r} {each}", type(each).__name__)

    def test_no_credential_is_in_an_error(self, catalog: Catalog) -> None:
        """If this fails, a message holds a URI with its password, or a whole set of properties."""
        planted = self.another(catalog, **{"kit.password": _PLANTED})
        table = self.create(planted)
        name = table.name()
        calls: list[Callable[[], Any]] = [
            lambda: planted.load_table(f"{name[0]}.nothing"),
            lambda: planted.create_table(name, SCHEMA),
            lambda: planted.create_namespace(name[0]),
            lambda: planted.drop_namespace(name[0]),
            lambda: planted.drop_namespace(self.fresh()),
            lambda: planted.register_table(f"{name[0]}.r", f"{table.location()}/nothing.metadata.json"),
            lambda: planted.rename_table(f"{name[0]}.nothing", f"{name[0]}.other"),
            lambda: table.io.read("nowhere-known://x/y"),
            lambda: table.io.read(f"{table.location()}/nothing"),
        ]
        for call in calls:
            with pytest.raises(IcefieldError) as caught:
                call()
            self._check_silent(catalog, f"{caught.value} {caught.value!r} {caught.value.data}", "an error")

    def test_no_credential_is_stored_in_a_table(self, catalog: Catalog) -> None:
        """If this fails, properties of the catalog reach the table's metadata or files."""
        planted = self.another(catalog, **{"kit.password": _PLANTED})
        table = self.create(planted)
        table.append(rows([1]))
        table.set_properties(color="blue")
        for location in self.files(catalog, table.location()):
            self._check_silent(catalog, catalog.io.read(location).decode("latin-1"), location)

    def _check_silent(self, catalog: Catalog, string: str, what: str) -> None:
        """Check that no secret is in a string."""
        for secret in (_PLANTED, *_secrets(catalog.properties)):
            assert secret not in string, f"{what} shows a credential"


def _secrets(properties: Mapping[str, str]) -> set[str]:
    """Secret values of the catalog's own properties."""
    found = {value for key, value in properties.items() if _SECRET_KEYS.search(key) and len(value) > 5}
    found |= {str(urlsplit(value).password) for value in properties.values() if "@" in value and _password(value)}
    return found


def _password(uri: str) -> str | None:
    try:
        return urlsplit(uri).password
    except ValueError:
        return None
