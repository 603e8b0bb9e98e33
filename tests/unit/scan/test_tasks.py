"""Tasks and their context: values that travel."""

import pickle

import pytest
from icefield.expressions import AlwaysTrue, parse
from icefield.scan import FileScanTask
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
    assert FileScanTask(file, spec_id=0) == task
    assert hash(FileScanTask(file)) == hash(task)
    with pytest.raises(ValueError, match="spec"):
        FileScanTask(file, spec_id=3)
    assert "x.parquet" in repr(task)


def test_a_context_is_pickled_and_tells_what_the_tasks_are_read_with() -> None:
    table = planned()
    table.properties = {"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'}
    context = table.scan("ID > 1", selected_fields=("name",), case_sensitive=False).context
    again = pickle.loads(pickle.dumps(context))
    assert again.projection.column_names == ["name"]
    assert again.schema == table.schema
    assert str(again.row_filter) == str(parse("ID > 1"))
    assert (again.case_sensitive, again.specs, list(again.schemas)) == (False, {0: table.specs[0]}, [0])
    assert again.name_mapping is not None
