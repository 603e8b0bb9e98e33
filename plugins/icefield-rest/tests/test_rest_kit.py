"""The client passes the kit before Java's reference server: the catalog, and what users hold of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from icefield import Catalog, FileIO, Plugins, load_catalog
from icefield.abc import CatalogBackend
from icefield.toolkit import Backoff
from icefield_rest.backend import RestBackend
from icefield_testing import CatalogSuite, LossyProxy, RequestFaults, TableBehaviourSuite
from servers.java_rest import drop_everything

WAITS = {"rest.retry.min-wait-ms": "1", "rest.retry.max-wait-ms": "20"}


_BUSY = "it answers 500 to some of them where SQLite is busy"


class TestRestCatalog(CatalogSuite):
    listing_page = 40  # two of the client
    properties_of_the_store: ClassVar = frozenset({"location"})
    time_out_properties: ClassVar = {"rest.client.socket-timeout-ms": "300"}

    @pytest.fixture
    def backend(self, java_rest: str) -> Iterator[CatalogBackend]:
        drop_everything(java_rest)
        properties = {"uri": java_rest, "rest-page-size": "20", **WAITS}
        made = RestBackend("test", properties, FileIO(Plugins.installed(), properties))
        yield made
        made.close()
        drop_everything(java_rest)

    @pytest.fixture(autouse=True)
    def looks_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The strategy waits less between its looks for the outcome of a commit whose reply was lost."""
        monkeypatch.setattr("icefield_rest.strategy._LOOK_AGAIN", Backoff(0.02, 0.2, jitter=0))

    @pytest.fixture
    def service(self, java_rest: str) -> Iterator[LossyProxy]:
        with LossyProxy(int(java_rest.rpartition(":")[2])) as proxy:
            yield proxy

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        properties = {**backend.properties, "rest.retry.num-retries": "2", "uri": f"http://127.0.0.1:{service.port}"}
        return RestBackend("test", properties, FileIO(Plugins.installed(), properties))


class TestTablesOfRest(TableBehaviourSuite):
    @pytest.fixture
    def catalog(self, java_rest: str) -> Iterator[Catalog]:
        drop_everything(java_rest)
        with load_catalog("test", type="rest", uri=java_rest, **WAITS) as catalog:
            yield catalog


# What Java's reference server does in its own way, whatever the client is.
OF_JAVAS_CATALOG = {
    "test_one_of_many_creators_of_a_namespace_wins": _BUSY,
    "test_a_table_is_created_together_with_a_change_of_another": "its transactions create no table",
    "test_of_racing_changes_of_several_tables_each_is_whole": "it commits the tables one after the other",
    "test_no_update_of_a_namespace_is_lost_or_seen_by_halves": "its JDBC catalog sets and removes in two steps",
    "test_a_name_is_kept_to_the_letter_or_refused": "it creates a namespace with %20 and takes no path with its name",
    "test_a_table_that_is_refused_its_name_leaves_no_file": "it leaves that of a table with the name of a view",
    "test_a_view_is_created_in_a_namespace_only": "its JDBC catalog makes views in no namespace",
}
OF_JAVA = {
    "test_a_table_that_was_moved_opens_through_a_location_map": "it writes locations as file:/path",
    "test_a_table_that_was_moved_is_changed_where_it_is_now": "it reads the metadata where the table was",
    "test_old_metadata_is_deleted_where_that_is_safe_and_refused_elsewhere": "it writes locations as file:/path",
    "test_another_folder_for_metadata_is_used_where_that_is_safe_and_refused_elsewhere": "it writes file:/path",
    "test_a_location_of_the_users_choice_is_used_or_refused": "it writes locations as file:/path",
    "test_a_commit_leaves_no_file_that_nothing_refers_to": "Hadoop writes a checksum next to each metadata file",
    "test_an_operation_on_a_missing_namespace_says_so": "its JDBC catalog makes tables in no namespace",
    "test_one_of_many_creators_of_a_namespace_wins": _BUSY,
    "test_a_namespace_with_another_below_is_not_dropped": "its JDBC catalog drops one with others below",
}


def _leaves_out(reason: str) -> Callable[[object], None]:
    def left_out(self: object) -> None:
        pytest.skip(f"Java's server: {reason}")

    return left_out


for _suite, _reasons in ((TestRestCatalog, OF_JAVAS_CATALOG), (TestTablesOfRest, OF_JAVA)):
    for _name, _reason in _reasons.items():
        setattr(_suite, _name, _leaves_out(_reason))
