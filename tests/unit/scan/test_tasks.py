"""Tasks and their context, which are pickled and sent to other processes."""

import pickle
from dataclasses import fields

from icefield.expressions import AlwaysTrue
from icefield.scan import FileScanTask
from icefield.scan.deletes.key_columns import dropped_fields
from icefield.schema import Schema
from icefield.types import NestedField, StructType
from planned_tables import PlannedTable, spec


def planned() -> PlannedTable:
    table = PlannedTable(specs=[spec((1, "identity", "id"))])
    table.add([table.file(str(i), (i,), bounds={"name": ("a", "b")}, split_offsets=(4,)) for i in range(3)])
    table.commit()
    return table


def test_a_planned_task_is_pickled_whole_and_alone() -> None:
    tasks = list(planned().scan("id > 1 and name = 'a'").plan_files())
    [task] = tasks
    again = pickle.loads(pickle.dumps(task))
    assert again == task
    assert (again.file, again.start, again.length) == (task.file, 0, task.file.file_size_in_bytes)
    assert str(again.residual) == str(task.residual) == "name = 'a'"
    assert (again.data_sequence_number, again.file_sequence_number, again.spec_id) == (1, 1, 0)
    part = pickle.loads(pickle.dumps(task.part(4, 10)))
    assert (part.start, part.length, part.is_whole_file) == (4, 10, False)
    assert part != task
    assert len(pickle.dumps(task)) < 2000


def test_a_task_can_be_built_by_hand() -> None:
    file = planned().file("x", (1,))
    task = FileScanTask(file)
    assert (task.start, task.length, task.is_whole_file) == (0, file.file_size_in_bytes, True)
    assert (task.residual, task.delete_files, task.data_sequence_number) == (AlwaysTrue(), (), None)
    assert FileScanTask(file, start=10).length == file.file_size_in_bytes - 10
    assert task.spec_id == file.spec_id
    assert hash(FileScanTask(file)) == hash(task)
    assert "x.parquet" in repr(task)


def test_a_context_is_pickled_and_tells_what_the_tasks_are_read_with() -> None:
    table = planned()
    table.properties = {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'}
    context = table.scan("ID > 1", selected_fields=("name",), case_sensitive=False).context
    again = pickle.loads(pickle.dumps(context))
    assert again.projection.column_names == ["name"]
    assert again.schema == table.schema
    assert (again.case_sensitive, again.specs, again.dropped) == (False, {0: table.specs[0]}, {})
    assert again.name_mapping is not None


def test_a_context_holds_nothing_of_a_long_history_but_the_fields_that_are_gone() -> None:
    """One of a hundred schemas has a further field, since dropped; the context holds no filter and no properties."""
    table = PlannedTable()
    size = len(pickle.dumps(table.scan().context))
    for number in range(1, 100):
        more = [NestedField(100, "gone", "string")] if number == 50 else []
        table.schemas.append(Schema(*table.schema.fields, *more, schema_id=number))
    table.properties = {f"property-{number}": "x" * 100 for number in range(100)}
    context = table.scan(" or ".join(f"name = 'name {number}'" for number in range(500))).context
    again = pickle.loads(pickle.dumps(context))
    assert [field.name for field in fields(again)] == [
        "schema", "projection", "io", "case_sensitive", "specs", "dropped", "name_mapping", "dictionaries", "scan_id",
    ]  # fmt: skip
    assert again.dropped == {100: NestedField(100, "gone", "string")}
    assert len(pickle.dumps(context)) < size + 300
    assert table.scan().context.dropped == again.dropped


def test_fields_that_are_gone_are_those_of_the_latest_schema_each_in_what_is_around_it() -> None:
    def struct(*names: str, id_: int = 10) -> NestedField:
        return NestedField(2, "s", StructType(*(NestedField(id_ + i, name, "int") for i, name in enumerate(names))))

    one = NestedField(1, "a", "int")
    schemas = [
        Schema(one, struct("x", "y", "z"), NestedField(5, "old", "int"), schema_id=1),
        Schema(one, struct("x", "y"), NestedField(5, "new", "long"), schema_id=3),
        Schema(one, struct("x", "y"), NestedField(5, "middle", "int"), schema_id=2),
    ]
    assert dropped_fields(Schema(one, struct("x"), schema_id=4), schemas) == {
        5: NestedField(5, "new", "long"),
        11: struct("y", id_=11),
        12: struct("z", id_=12),
    }
    assert dropped_fields(Schema(one, schema_id=4), schemas)[2] == struct("x", "y")
    assert dropped_fields(schemas[0], schemas) == {}
