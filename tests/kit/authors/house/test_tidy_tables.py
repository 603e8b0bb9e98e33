"""A rule and a compaction strategy of another plugin are found by their hooks, and work like Icefield's own."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from authors.house.opened import opened, opened_with
from icefield import Catalog, Plugins, Table, hookimpl
from icefield.errors import BrokenPlugin, InvalidArgument, PluginConflict
from icefield_maintenance import CompactionStrategy, HealthRules
from icefield_maintenance.doctor import Finding, Repair, Result, examine_table, repair_table

OWN = ["metadata", "manifests", "entries", "files", "rows", "maintenance"]


def table_in(catalog: Catalog) -> Table:
    schema = pa.schema([("id", pa.int64()), ("price", pa.int64())])
    made = catalog.create_table("db.t", schema, properties={"commit.manifest-merge.enabled": "false"})
    for start in range(5):
        made.append(pa.table({"id": [start, 9 - start], "price": [10 - start, start]}))
    return made


@pytest.fixture
def table() -> Table:
    return table_in(opened())


def strategies(*records: Any) -> Any:
    @hookimpl(optionalhook=True)
    def icefield_compaction_strategies() -> Sequence[Any]:
        return records

    return SimpleNamespace(icefield_compaction_strategies=icefield_compaction_strategies)


def health_rules(*records: Any) -> Any:
    @hookimpl(optionalhook=True)
    def icefield_health_rules() -> Sequence[Any]:
        return records

    return SimpleNamespace(icefield_health_rules=icefield_health_rules)


def findings(table: Table, group: str) -> dict[str, Finding]:
    return {each.check: each for found in examine_table(table) if found.name == group for each in found.findings}


def test_a_rule_of_another_plugin_is_checked_beside_those_of_icefield(table: Table) -> None:
    assert [group.name for group in examine_table(table)] == [*OWN, "tidiness"]
    found = findings(table, "tidiness")["tidy-described"]
    assert (found.result, found.found) == (Result.WARNING, "the table has no comment")
    assert (found.section, found.advice) == ("House rules", "set the property `comment`")
    with table.transaction() as tx:
        tx.set_properties({"comment": "prices"})
    assert findings(table, "tidiness")["tidy-described"].result is Result.OK


def test_a_rule_of_another_plugin_may_have_a_repair_of_icefield(table: Table) -> None:
    assert findings(table, "tidiness")["tidy-compact"].result is Result.WARNING
    (step,) = repair_table(table, [Repair.REWRITE_DATA_FILES], dry_run=False).steps
    assert "tidy-compact" in step.rules
    assert len(table.refresh().inspect.files()) == 1
    assert findings(table, "tidiness")["tidy-compact"].result is Result.OK


def test_a_strategy_of_another_plugin_orders_the_rows_of_new_files(table: Table) -> None:
    assert table.maintenance.rewrite_data_files(strategy="descending", rewrite_all=True).rewritten_data_files == 5
    assert table.scan().to_arrow()["id"].to_pylist() == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    table.maintenance.rewrite_data_files(strategy="descending", sort_order="price", rewrite_all=True)
    prices = table.scan().to_arrow()["price"].to_pylist()
    assert prices == sorted(prices, reverse=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "shuffle"}, "a strategy is one of binpack, descending, sort, zorder, not 'shuffle'"),
        (
            {"strategy": "descending", "zorder_columns": ["id"]},
            "zorder_columns goes with the strategy zorder, not",
        ),
        ({"sort_order": "id"}, "sort_order goes with the strategy descending or sort, not binpack"),
    ],
)
def test_options_that_do_not_go_with_a_strategy_are_refused(table: Table, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        table.maintenance.rewrite_data_files(**options)


def test_a_strategy_of_two_plugins_is_refused_when_it_is_used() -> None:
    twice = strategies(CompactionStrategy("sort", "builtins:dict"))
    table = table_in(opened(twice))
    with pytest.raises(PluginConflict, match=r"compaction strategy 'sort' is provided by 'maintenance' .* and by"):
        table.maintenance.rewrite_data_files(strategy="sort", sort_order="id")
    assert table.maintenance.rewrite_data_files(rewrite_all=True).rewritten_data_files == 5


@pytest.mark.parametrize(
    ("target", "said"), [("nowhere:Strategy", "No module named 'nowhere'"), ("builtins:repr", "makes no Ordering")]
)
def test_a_strategy_that_does_not_load_or_makes_something_else_is_named(target: str, said: str) -> None:
    table = table_in(opened(strategies(CompactionStrategy("wrong", target))))
    with pytest.raises(BrokenPlugin, match=rf"compaction strategy 'wrong'.*{said}"):
        table.maintenance.rewrite_data_files(strategy="wrong")


@pytest.mark.parametrize(
    ("target", "said"), [("nowhere:RULES", "No module named 'nowhere'"), ("builtins:repr", "it is no RuleGroup")]
)
def test_rules_that_do_not_load_are_a_finding_and_others_are_checked(target: str, said: str) -> None:
    table = table_in(opened(health_rules(HealthRules("wrong", target))))
    assert [group.name for group in examine_table(table)] == [*OWN, "tidiness", "wrong"]
    found = findings(table, "wrong")["wrong"]
    assert found.result is Result.FAILED
    assert said in found.found
    assert found.advice
    assert repair_table(table, [Repair.REWRITE_DATA_FILES]).left[-1] == found


def test_an_examination_without_any_rules_is_no_success() -> None:
    plugins = Plugins(["icefield.builtin.hooks", "icefield_avro.hooks", "icefield_parquet.hooks"])
    (group,) = examine_table(table_in(opened_with(plugins)))
    (found,) = group.findings
    assert (found.result, found.found) == (Result.FAILED, "no plugin of the catalog provides rules for tables")
