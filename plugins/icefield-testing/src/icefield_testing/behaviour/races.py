"""Races: threads with catalogs of their own attempt the same change at the same time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from threading import Event
from typing import TypeVar

import pytest
from icefield import Catalog, Table
from icefield.abc import CatalogAbility
from icefield.errors import (
    CommitFailed,
    IcefieldError,
    NamespaceExists,
    NoSuchTable,
    TableExists,
)

from icefield_testing.behaviour.base import SCHEMA, BehaviourChecks, backend_of, ids, rows
from icefield_testing.processes import AnotherProcess

T = TypeVar("T")

PROCESSES = 3
APPENDS = 2


class RaceChecks(BehaviourChecks):
    """Checks of concurrent use."""

    def test_one_of_many_creators_of_a_table_wins(self, catalog: Catalog) -> None:
        """If this fails, creation looks first and writes then."""
        name = f"{self.space(catalog)}.raced"
        outcomes = self._contend(catalog, lambda each, number: self.create(each, name, by=str(number)))
        winners = [outcome for outcome in outcomes if isinstance(outcome, Table)]
        assert len(winners) == 1
        assert all(isinstance(outcome, Table | TableExists) for outcome in outcomes), outcomes
        found = catalog.load_table(name)
        assert found.metadata == winners[0].metadata
        assert outcomes[int(found.properties["by"])] is winners[0]

    def test_many_who_create_a_table_if_there_is_none_get_the_same(self, catalog: Catalog) -> None:
        """If this fails, one that lost the race gets an error, or a table that nobody else sees."""
        name = f"{self.space(catalog)}.raced"
        outcomes = self._contend(catalog, lambda each, _: each.create_table_if_not_exists(name, SCHEMA))
        uuids = {outcome.metadata.table_uuid for outcome in outcomes if isinstance(outcome, Table)}
        assert uuids == {catalog.load_table(name).metadata.table_uuid}
        assert all(isinstance(outcome, Table) for outcome in outcomes), outcomes

    def test_one_of_many_staged_creations_wins_with_its_rows(self, catalog: Catalog) -> None:
        """If this fails, rows of a creation that lost are in the winner's table, or the winner's are not."""
        name = f"{self.space(catalog)}.raced"

        def stage(each: Catalog, number: int) -> int:
            with each.create_table_transaction(name, SCHEMA, properties=self.table_properties) as staged:
                staged.append(rows([number]))
            return number

        outcomes = self._contend(catalog, stage)
        winners = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert len(winners) == 1
        assert all(isinstance(outcome, int | TableExists) for outcome in outcomes), outcomes
        assert ids(catalog.load_table(name)) == winners

    def test_one_of_many_creators_of_a_namespace_wins(self, catalog: Catalog) -> None:
        """If this fails, creation of a namespace looks first and writes then."""
        name = self.fresh()
        outcomes = self._contend(catalog, lambda each, number: each.create_namespace(name, {"by": str(number)}))
        won = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert len(won) == 1
        assert all(outcome is None or isinstance(outcome, NamespaceExists) for outcome in outcomes), outcomes
        assert catalog.load_namespace_properties(name)["by"] == str(won[0])

    def test_updates_of_a_namespaces_properties_are_all_there(self, catalog: Catalog) -> None:
        """If this fails, ``update_namespace_properties`` writes back what it read before another's change."""
        name = self.space(catalog)
        outcomes = self._contend(
            catalog, lambda each, number: each.update_namespace_properties(name, updates={f"k{number}": "1"})
        )
        assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)], outcomes
        assert catalog.load_namespace_properties(name).keys() >= {f"k{number}" for number in range(self.racers)}

    def test_no_append_of_many_is_lost(self, catalog: Catalog) -> None:
        """If this fails, two commits both believed that they replaced the same version."""
        table = self.create(catalog)

        def append(each: Catalog, number: int) -> None:
            mine = each.load_table(table.name())
            for step in range(3):
                mine.append(rows([number * 100 + step]))

        outcomes = self._contend(catalog, append)
        assert [each for each in outcomes if isinstance(each, BaseException)] == []
        found = self.held_again(catalog, table)
        assert ids(found) == sorted(number * 100 + step for number in range(self.racers) for step in range(3))
        self._check_history(found, self.racers * 3)

    def test_no_append_of_many_processes_is_lost(self, catalog: Catalog) -> None:
        """If this fails, what keeps commits apart (a lock, a cache of the current version) works between the threads of
        one process only: let the store or the service decide."""
        if self.one_process:
            pytest.skip("the tables live in one process (`one_process`)")
        table = self.create(catalog)

        def append(number: int) -> None:
            mine = self.in_another_process(catalog).load_table(table.name())
            for step in range(APPENDS):
                mine.append(rows([number * 100 + step]))

        with ExitStack() as stack:
            others = [stack.enter_context(AnotherProcess(append)) for _ in range(PROCESSES)]
            for number, other in enumerate(others):
                other.ask(number)
            for other in others:
                other.answer(self.check_seconds)
        found = self.held_again(catalog, table)
        assert ids(found) == sorted(number * 100 + step for number in range(PROCESSES) for step in range(APPENDS))
        self._check_history(found, PROCESSES * APPENDS)

    def test_appends_through_one_table_object_are_all_there(self, catalog: Catalog) -> None:
        """If this fails, the strategy or a connection is not safe for several threads."""
        table = self.create(catalog)
        outcomes = self.race(*(lambda n=number: table.append(rows([n])) for number in range(self.racers)))
        assert [each for each in outcomes if isinstance(each, BaseException)] == []
        assert ids(self.held_again(catalog, table)) == list(range(self.racers))

    def test_properties_that_many_set_are_all_there(self, catalog: Catalog) -> None:
        """If this fails, a change without a snapshot overwrites another's."""
        table = self.create(catalog)
        outcomes = self._contend(
            catalog, lambda each, number: each.load_table(table.name()).set_properties({f"k{number}": "1"})
        )
        assert all(isinstance(outcome, Table) for outcome in outcomes), outcomes
        found = self.held_again(catalog, table).properties
        assert found.keys() >= {f"k{number}" for number in range(self.racers)}

    def test_rows_and_columns_change_side_by_side(self, catalog: Catalog) -> None:
        """If this fails, an append that met a schema change undoes it, or is refused."""
        table = self.create(catalog)

        def evolve(each: Catalog) -> None:
            each.load_table(table.name()).update_schema().add_column("more", "int").commit()

        def change(each: Catalog, number: int) -> None:
            evolve(each) if number == 0 else each.load_table(table.name()).append(rows([number]))

        outcomes = self._contend(catalog, change)
        assert all(outcome is None or isinstance(outcome, CommitFailed) for outcome in outcomes), outcomes
        found = self.held_again(catalog, table)
        done = [number for number, outcome in enumerate(outcomes) if outcome is None]
        assert [n for n in done if n] == list(range(1, self.racers)), "an append does not fail for a new column"
        assert ids(found) == [number for number in done if number]
        assert ("more" in {field.name for field in found.schema().fields}) == (0 in done)

    def test_readers_see_whole_versions_only(self, catalog: Catalog) -> None:
        """If this fails, the pointer moves before the files are complete, or goes back."""
        table = self.create(catalog)
        done = Event()

        def read() -> list[int]:
            mine, seen = self.another(catalog), []
            while not done.is_set():
                found = mine.load_table(table.name())
                seen.append(len(ids(found)))
                assert len(found.snapshots()) == seen[-1]
            return seen

        def write() -> None:
            try:
                for number in range(6):
                    table.append(rows([number]))
            finally:
                done.set()

        seen, written = self.race(read, write)
        assert written is None
        assert isinstance(seen, list), seen
        assert seen == sorted(seen)

    def test_one_of_many_who_drop_a_table_does(self, catalog: Catalog) -> None:
        """If this fails, dropping twice succeeds twice, or fails with something else than ``NoSuchTable``."""
        table = self.create(catalog)
        outcomes = self._contend(catalog, lambda each, _: each.drop_table(table.name()))
        assert outcomes.count(None) == 1, outcomes
        assert all(outcome is None or isinstance(outcome, NoSuchTable) for outcome in outcomes), outcomes
        assert not catalog.table_exists(table.name())

    def test_a_table_that_is_dropped_under_its_writers_stays_dropped(self, catalog: Catalog) -> None:
        """If this fails, a commit that meets a drop brings the table back."""
        for _ in range(3):
            table = self.create(catalog)
            table.append(rows([0]))

            def change(each: Catalog, number: int, name: tuple[str, ...] = table.name()) -> None:
                each.drop_table(name) if number == 0 else each.load_table(name).append(rows([number]))

            outcomes = self._contend(catalog, change)
            assert outcomes[0] is None, outcomes
            assert all(outcome is None or isinstance(outcome, IcefieldError) for outcome in outcomes), outcomes
            assert not catalog.table_exists(table.name())
            assert catalog.list_tables(table.name()[0]) == []

    def test_one_of_many_new_names_for_a_table_wins(self, catalog: Catalog) -> None:
        """If this fails, a table has two names after a race, or none."""
        self._needs_rename(catalog)
        table = self.create(catalog)
        table.append(rows([1]))
        space = table.name()[0]
        outcomes = self._contend(catalog, lambda each, number: each.rename_table(table.name(), (space, f"n{number}")))
        winners = [outcome for outcome in outcomes if isinstance(outcome, Table)]
        assert len(winners) == 1
        assert all(isinstance(outcome, Table | NoSuchTable) for outcome in outcomes), outcomes
        assert catalog.list_tables(space) == [winners[0].name()]
        assert ids(catalog.load_table(winners[0].name())) == [1]

    def test_one_of_many_tables_gets_a_name_that_all_want(self, catalog: Catalog) -> None:
        """If this fails, renaming replaces a table that came first."""
        self._needs_rename(catalog)
        space = self.space(catalog)
        for number in range(self.racers):
            self.create(catalog, f"{space}.n{number}").append(rows([number]))
        outcomes = self._contend(catalog, lambda each, number: each.rename_table(f"{space}.n{number}", f"{space}.best"))
        winners = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Table)]
        assert len(winners) == 1
        assert all(isinstance(outcome, Table | TableExists) for outcome in outcomes), outcomes
        assert len(catalog.list_tables(space)) == self.racers
        assert ids(catalog.load_table(f"{space}.best")) == winners

    def test_appends_that_meet_a_renaming_are_there_or_refused(self, catalog: Catalog) -> None:
        """If this fails, an append that was acknowledged is not in the renamed table."""
        self._needs_rename(catalog)
        table = self.create(catalog)
        table.append(rows([0]))
        new = (table.name()[0], "renamed")

        def change(each: Catalog, number: int) -> int:
            if number == 0:
                each.rename_table(table.name(), new)
            else:
                each.load_table(table.name()).append(rows([number]))
            return number

        outcomes = self._contend(catalog, change)
        done = [outcome for outcome in outcomes if isinstance(outcome, int)]
        assert all(isinstance(outcome, int | IcefieldError) for outcome in outcomes), outcomes
        assert outcomes[0] == 0 or isinstance(outcomes[0], CommitFailed), outcomes
        assert ids(catalog.load_table(new if outcomes[0] == 0 else table.name())) == sorted({0, *done})

    # -- helpers

    def _contend(self, catalog: Catalog, step: Callable[[Catalog, int], T]) -> list[T | Exception]:
        """All racers take the step at the same time, each through a catalog of its own."""
        catalogs = [self.another(catalog) for _ in range(self.racers)]
        try:
            return self.race(*(lambda c=c, n=n: step(c, n) for n, c in enumerate(catalogs)))
        finally:
            for each in catalogs:
                each.close()

    def _check_history(self, table: Table, commits: int) -> None:
        """Check that the snapshots form a single line, with one for each commit."""
        snapshots = table.snapshots()
        assert len(snapshots) == commits
        assert [snapshot.sequence_number for snapshot in snapshots] == list(range(1, commits + 1))
        parents = [None, *(snapshot.snapshot_id for snapshot in snapshots[:-1])]
        assert [snapshot.parent_snapshot_id for snapshot in snapshots] == parents

    def _needs_rename(self, catalog: Catalog) -> None:
        """Skip where renaming is a declared gap."""
        if CatalogAbility.RENAME not in backend_of(catalog).abilities:
            pytest.skip("the backend declares no renaming")
