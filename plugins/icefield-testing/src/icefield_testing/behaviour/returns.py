"""Tables and views return to an earlier state, and tables are replaced: nothing is added twice, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from icefield import Catalog, Table
from icefield.abc import ViewCatalog
from icefield.schema import Schema
from icefield.transaction import Transaction
from icefield.types import LongType, NestedField, StringType

from icefield_testing.behaviour.base import SCHEMA, BehaviourChecks, backend_of, ids, rows

_OTHER = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "note", StringType()))


class ReturnChecks(BehaviourChecks):
    """Checks of reverted changes, and of replaced tables."""

    def test_columns_are_set_back(self, catalog: Catalog) -> None:
        """If this fails, a schema that the table had before is added anew, or cannot become current again."""
        table = self.create(catalog)
        table.append(rows([1]))
        table.update_schema().add_column("more", "int").commit()
        table.update_schema().delete_column("more").commit()
        self._has(catalog, table, SCHEMA, schemas=2)
        table.update_schema().rename_column("kind", "sort").commit()
        table.update_schema().rename_column("sort", "kind").commit()
        self._has(catalog, table, SCHEMA, schemas=3)
        table.update_schema().set_identifier_fields("id").commit()
        table.update_schema().set_identifier_fields().commit()
        self._has(catalog, table, SCHEMA, schemas=4)
        table.update_schema().add_column("later", "int").commit()
        found = self.held_again(catalog, table)
        assert found.schema().find_field("later").field_id == 5, "the id of a deleted column is given again"
        assert ids(found) == [1]

    def test_columns_are_set_back_in_one_transaction(self, catalog: Catalog) -> None:
        """If this fails, -1 or an id is taken for another schema than the one that the transaction meant."""
        table = self.create(catalog)
        with table.transaction() as tx:
            tx.update_schema().add_column("more", "int").commit()
            tx.update_schema().rename_column("kind", "sort").commit()
            tx.update_schema().rename_column("sort", "kind").commit()
        found = self.held_again(catalog, table)
        assert [field.name for field in found.schema().fields] == ["id", "kind", "value", "more"]
        with table.transaction() as tx:
            tx.update_schema().delete_column("more").commit()
            tx.set_properties(color="blue")
            tx.append(rows([1]))
        self._has(catalog, table, SCHEMA, schemas=3)
        found = self.held_again(catalog, table)
        assert found.properties["color"] == "blue"
        assert ids(found) == [1]

    def test_a_partitioning_is_set_back(self, catalog: Catalog) -> None:
        """If this fails, a spec that the table had before is added anew, or cannot become the default again."""
        table = self.create(catalog)
        table.append(rows([1]))
        for name in ("a", "b", "c"):
            update = table.update_spec()
            (update.remove_field("kind") if name == "b" else update.add_field("kind", "identity")).commit()
            assert self.held_again(catalog, table).spec().is_unpartitioned == (name == "b")
            table.append(rows([2], name))
        with table.transaction() as tx:
            tx.update_spec().remove_field("kind").commit()
            tx.update_spec().add_field("id", "bucket[4]", "bucket").commit()
            tx.update_spec().remove_field("bucket").commit()
            tx.append(rows([3], "d"))
        found = self.held_again(catalog, table)
        assert found.spec().is_unpartitioned
        assert len(found.specs()) == 3
        assert ids(found, "kind <> 'b'") == [1, 2, 2, 3]

    def test_a_sort_order_is_set_back(self, catalog: Catalog) -> None:
        """If this fails, an order that the table had before is added anew, or cannot become the default again."""
        table = self.create(catalog)
        for column in ("id", "value", "id"):
            table.update_sort_order().asc(column).commit()
        assert [field.source_id for field in self.held_again(catalog, table).sort_order().fields] == [1]
        table.update_sort_order().commit()
        assert self.held_again(catalog, table).sort_order().is_unsorted
        with table.transaction() as tx:
            tx.update_sort_order().desc("value").commit()
            tx.update_sort_order().asc("id").commit()
        found = self.held_again(catalog, table)
        assert [field.source_id for field in found.sort_order().fields] == [1]
        assert len(found.sort_orders()) == 4

    def test_a_table_is_replaced_by_its_like(self, catalog: Catalog) -> None:
        """If this fails, a replacement sends the schema, spec or order anew that the table has, or keeps its rows."""
        table = self.create(catalog, partition_spec=["kind"])
        table.append(rows([1]))
        before = table.snapshots()[0].snapshot_id
        replaced = self._replaced(catalog, table, SCHEMA, ["kind"])
        assert ids(replaced) == []
        replaced = self._replaced(catalog, table, SCHEMA, ["kind"], lambda tx: tx.append(rows([2])))
        found = self.held_again(catalog, table)
        assert ids(found) == ids(replaced) == [2]
        assert (found.metadata.table_uuid, len(found.schemas()), len(found.specs())) == (
            table.metadata.table_uuid,
            1,
            1,
        )
        assert ids(found, snapshot_id=before) == [1]

    def test_a_table_is_replaced_by_another_and_back(self, catalog: Catalog) -> None:
        """If this fails, a replacement works only where the schema, the spec and the order are all new."""
        table = self.create(catalog)
        table.append(rows([1]))
        first = table.snapshots()[0].snapshot_id
        other = pa.table(
            {"id": [2], "note": ["x"]}, pa.schema([pa.field("id", pa.int64(), False), ("note", pa.string())])
        )

        def filled(tx: Transaction[Table]) -> None:
            tx.append(other)
            tx.set_properties(color="blue")
            tx.update_schema().add_column("more", "int").commit()

        self._replaced(catalog, table, _OTHER, [], filled)
        found = self.held_again(catalog, table)
        assert found.scan().to_arrow().to_pydict() == {"id": [2], "note": ["x"], "more": [None]}
        assert found.properties["color"] == "blue"
        self._replaced(catalog, table, SCHEMA, [], lambda tx: tx.append(rows([3])))
        found = self.held_again(catalog, table)
        assert [field.name for field in found.schema().fields] == ["id", "kind", "value"]
        assert found.schema().find_field("kind").field_id == 6, "the id of a deleted column is given again"
        assert ids(found) == [3]
        assert ids(found, snapshot_id=first) == [1]

    def test_a_view_is_set_back(self, catalog: Catalog) -> None:
        """If this fails, a version or schema that the view had before cannot become current again."""
        if not isinstance(backend_of(catalog), ViewCatalog):
            pytest.skip("the backend is no ViewCatalog")
        name = (self.space(catalog), "v")
        view = catalog.create_view(name, SCHEMA, {"spark": "SELECT 1"})
        for schema, sql in (
            (SCHEMA, "SELECT 2"),
            (_OTHER, "SELECT 3"),
            (SCHEMA, "SELECT 1"),
            (_OTHER, "SELECT 3"),
            (SCHEMA, "SELECT 2"),
        ):
            view = view.replace(schema, {"spark": sql})
            found = self.another(catalog).load_view(name)
            assert found.sql == {"spark": sql}
            assert [field.name for field in found.schema().fields] == [field.name for field in schema.fields]
        assert view.replace(SCHEMA, {"spark": "SELECT 2"}).metadata.current_version_id == 2
        found = self.another(catalog).load_view(name)
        # A service may give the first version a summary of its own, so that its query comes back as another version.
        assert len(found.metadata.versions) <= 4, "a version that the view had was added again"

    def _has(self, catalog: Catalog, table: Table, schema: Schema, *, schemas: int) -> None:
        found = self.held_again(catalog, table)
        assert found.schema().fields == schema.fields
        assert len(found.schemas()) == schemas, "a schema that the table had was added again"

    def _replaced(
        self,
        catalog: Catalog,
        table: Table,
        schema: Schema,
        spec: list[str],
        change: Callable[[Transaction[Table]], object] = lambda _: None,
    ) -> Table:
        with catalog.replace_table_transaction(table.name(), schema, partition_spec=spec) as tx:
            change(tx)
        table.refresh()
        return self.held_again(catalog, table)
