"""Reading tasks: projection, exact filters, metadata columns, splits, limits."""

import datetime as dt
import pickle
import time
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.abc import PutMode
from icefield.builtin.memory import MemoryFileSystem
from icefield.engine import read_task
from icefield.errors import FileMissing, InvalidFile, UnsupportedFeature
from icefield.expressions import bind, parse
from icefield.manifest import DataFile, DataFileContent
from icefield.partitioning import UNPARTITIONED, PartitionField, PartitionSpec
from icefield.plugins import Plugins
from icefield.scan import FileScanTask, ScanContext, read_positions, read_tasks
from icefield.schema import Schema, parse_name_mapping, schema_to_arrow
from icefield.storage import FileIO, LocationProvider
from icefield.types import ListType, MapType, NestedField, StructType
from icefield.types.reserved import DELETED, FILE, POS, SPEC_ID, partition_field
from icefield.writing import WriteContext, write_batches
from vectors import VECTORS

PLUGINS = Plugins.installed()
IO = FileIO(PLUGINS)
FORMATS = ("parquet", "avro")

SCHEMA = Schema(
    NestedField(1, "n", "int", required=True),
    NestedField(2, "t", "string"),
    NestedField(3, "s", StructType(NestedField(4, "x", "float"), NestedField(5, "y", "string"))),
)


@pytest.fixture(params=FORMATS)
def written(request):
    """Writes rows as files of a format, and gives a task for each."""

    def write(schema, rows, spec=UNPARTITIONED, **options):
        location = f"memory://read/{request.node.name}/{request.param}"
        context = WriteContext(schema, spec, LocationProvider.of(location, {}), IO, request.param, **options)
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=schema_to_arrow(schema))
        return [FileScanTask(file) for file in write_batches(context, table)]

    return write


def context_of(schema, *names, metadata=(), **options):
    projection = schema.select(*names) if names else schema
    return ScanContext(schema, Schema(*projection.fields, *metadata), IO, **options)


def read(tasks, context, **options):
    return [row for batch in read_tasks(tasks, context, **options) for row in batch.to_pylist()]


ROWS = [
    {"n": n, "t": f"t{n % 4}" if n % 5 else None, "s": {"x": n / 4, "y": str(n)} if n % 3 else None} for n in range(60)
]


class TestEvolution:
    @pytest.mark.spec("PRJ-02", "TYP-29", "PRJ-01", "PRJ-03")
    def test_the_vector_of_column_projection(self, written):
        vector = VECTORS["column_projection"]
        held = Schema(*(NestedField(id_, name, kind) for id_, name, kind in vector["file_schema"]))
        types = {id_: kind for id_, _, kind in vector["file_schema"]}
        schema = Schema(*(NestedField(id_, name, types.get(id_, "date")) for id_, name in vector["read_schema"]))
        (row,) = read(written(held, [vector["file_row"]]), context_of(schema))
        assert list(row.items()) == [tuple(pair) for pair in vector["result"]]

    @pytest.mark.spec("SCH-06", "SCH-07", "SCH-10", "SCH-11", "SCH-12", "PRJ-16", "PRJ-14", "TYP-29")
    def test_a_schema_may_change_in_every_way_at_every_depth(self, written):
        held = Schema(
            NestedField(1, "i", "int", required=True),
            NestedField(2, "f", "float"),
            NestedField(3, "d", "decimal(9,2)"),
            NestedField(4, "gone", "string"),
            NestedField(5, "l", ListType(6, StructType(NestedField(7, "a", "int"), NestedField(8, "b", "string")))),
            NestedField(9, "m", MapType(10, "string", 11, StructType(NestedField(12, "v", "int")))),
        )
        rows = [
            {"i": 1, "f": 1.5, "d": 2, "gone": "x", "l": [{"a": 1, "b": "p"}, None], "m": [("k", {"v": 3})]},
            {"i": -1, "f": None, "d": None, "gone": None, "l": None, "m": None},
        ]
        element = StructType(
            NestedField(8, "bee", "string"), NestedField(20, "new", "int"), NestedField(7, "a", "long")
        )
        value = StructType(NestedField(12, "v", "long"), NestedField(22, "w", "date"))
        schema = Schema(
            NestedField(9, "map", MapType(10, "string", 11, value)),
            NestedField(3, "dec", "decimal(38,2)"),
            NestedField(21, "gone", "int"),
            NestedField(1, "i", "long"),
            NestedField(5, "list", ListType(6, element)),
            NestedField(2, "f", "double"),
        )
        assert read(written(held, rows), context_of(schema)) == [
            {
                "map": [("k", {"v": 3, "w": None})],
                "dec": 2,
                "gone": None,
                "i": 1,
                "list": [{"bee": "p", "new": None, "a": 1}, None],
                "f": 1.5,
            },
            {"map": None, "dec": None, "gone": None, "i": -1, "list": None, "f": None},
        ]

    @pytest.mark.spec("PRJ-14", "PRJ-15")
    def test_one_leaf_of_a_struct_is_read_and_null_structs_stay_null(self, written):
        tasks = written(SCHEMA, ROWS)
        found = read(tasks, context_of(SCHEMA, "s.y"))
        assert found == [{"s": row["s"] and {"y": row["s"]["y"]}} for row in ROWS]
        evolved = Schema(NestedField(3, "s", StructType(NestedField(9, "z", "int"))))
        assert read(tasks, context_of(evolved)) == [{"s": row["s"] and {"z": None}} for row in ROWS]

    @pytest.mark.spec("PRJ-20", "TYP-19")
    def test_a_required_column_that_is_missing_is_named_with_the_file(self, written):
        (task,) = written(SCHEMA, ROWS)
        schema = Schema(*SCHEMA.fields, NestedField(9, "who", "int", required=True))
        with pytest.raises(InvalidFile, match="'who'") as caught:
            read([task], context_of(schema))
        assert caught.value.location == task.file.file_path
        assert len(read([task], context_of(schema, "n"))) == 60, "it is not missed where it is not read"


class TestDefaults:
    SCHEMA = Schema(
        *SCHEMA.fields,
        NestedField(9, "c", "int", initial_default=7, write_default=8),
        NestedField(10, "r", "string", required=True, initial_default="old"),
    )

    @pytest.mark.spec("DEF-01", "DEF-02", "PRJ-06")
    def test_rows_older_than_a_column_have_its_initial_default(self, written):
        tasks = written(SCHEMA, ROWS[:2])
        newer = [{"n": 100, "t": None, "s": None, "c": 8, "r": "new"}]
        assert [row["c"] for row in read(tasks, context_of(self.SCHEMA))] == [7, 7]
        assert [(row["c"], row["r"]) for row in read(written(self.SCHEMA, newer), context_of(self.SCHEMA))] == [
            (8, "new")
        ]

    @pytest.mark.spec("DEF-15", "SCAN-40")
    @pytest.mark.parametrize(
        ("text", "count"), [("c = 7", 60), ("c = 8", 0), ("c is null", 0), ("r = 'old' and n < 3", 3), ("r > 'p'", 0)]
    )
    def test_a_filter_treats_defaults_as_the_rows_values(self, written, text, count):
        tasks = [FileScanTask(task.file, parse(text)) for task in written(SCHEMA, ROWS)]
        for names in ((), ("n",), ("c",)):
            assert len(read(tasks, context_of(self.SCHEMA, *names))) == count

    @pytest.mark.spec("DEF-15", "PRJ-04")
    def test_a_filter_treats_identity_partition_values_as_the_rows_values(self, written):
        spec = PartitionSpec(PartitionField(9, 1000, "identity", "c"), spec_id=2)
        tasks = [
            FileScanTask(replace(task.file, spec_id=2, partition=(5,)), parse("c = 5 and n < 4"))
            for task in written(SCHEMA, ROWS)
        ]
        found = read(tasks, context_of(self.SCHEMA, "n", "c", specs={2: spec}))
        assert found == [{"n": n, "c": 5} for n in range(4)]


CONDITIONS = {
    "n = 17": lambda r: r["n"] == 17,
    "n < 5 or n >= 55": lambda r: r["n"] < 5 or r["n"] >= 55,
    "t = 't1'": lambda r: r["t"] == "t1",
    "t is null": lambda r: r["t"] is None,
    "t <> 't1'": lambda r: r["t"] is not None and r["t"] != "t1",
    "not (t = 't1' or n > 30)": lambda r: r["t"] is not None and r["t"] != "t1" and r["n"] <= 30,
    "s.x > 3.0 and t in ('t1', 't2')": lambda r: r["s"] and r["s"]["x"] > 3 and r["t"] in ("t1", "t2"),
    "s.y = '7' or s.x is null": lambda r: r["s"] is None or r["s"]["y"] == "7",
    "t like 't%' and n < 9": lambda r: r["t"] is not None and r["n"] < 9,
}


class TestFilters:
    @pytest.mark.parametrize("text", CONDITIONS)
    @pytest.mark.parametrize("names", [(), ("n",), ("s.x",), ("s.y", "t"), ("t", "n")])
    def test_exactly_the_matching_rows_come_with_the_selected_columns_only(self, written, text, names):
        tasks = [FileScanTask(task.file, parse(text)) for task in written(SCHEMA, ROWS)]
        context = context_of(SCHEMA, *names)
        expected = pa.Table.from_pylist([row for row in ROWS if CONDITIONS[text](row)], schema=schema_to_arrow(SCHEMA))
        whole = [row for batch in read_tasks(tasks, context) for row in batch.to_pylist()]
        assert whole == [pick(row, context.projection) for row in expected.to_pylist()]
        for batch in read_tasks(tasks, context):
            assert batch.num_rows > 0
            assert batch.schema.equals(schema_to_arrow(context.projection), check_metadata=True)

    def test_a_residual_that_is_bound_already_is_taken(self, written):
        (task,) = written(SCHEMA, ROWS)
        bound = FileScanTask(task.file, bind(SCHEMA, parse("n = 3")))
        assert [row["n"] for row in read([bound], context_of(SCHEMA))] == [3]

    def test_names_of_a_filter_may_differ_in_case_when_the_scan_says_so(self, written):
        (task,) = written(SCHEMA, ROWS)
        upper = FileScanTask(task.file, parse("N = 3 and S.Y is null"))
        assert [row["n"] for row in read([upper], context_of(SCHEMA, "n", case_sensitive=False))] == [3]

    def test_a_filter_that_nothing_can_pass_opens_no_file(self):
        file = DataFile(file_path="memory://read/none", file_format="parquet", record_count=1, file_size_in_bytes=1)
        assert read([FileScanTask(file, parse("n is null"))], context_of(SCHEMA)) == []

    def test_no_columns_give_rows_without_any(self, written):
        (task,) = written(SCHEMA, ROWS)
        empty = ScanContext(SCHEMA, Schema(), IO)
        assert sum(batch.num_rows for batch in read_task(task, empty)) == 60
        filtered = FileScanTask(task.file, parse("n < 7"))
        batches = list(read_task(filtered, empty))
        assert sum(batch.num_rows for batch in batches) == 7
        assert all(batch.num_columns == 0 for batch in batches)


def pick(row, projection):
    picked = {}
    for field in projection.fields:
        value = row[field.name]
        if isinstance(field.field_type, StructType) and value is not None:
            value = {child.name: value[child.name] for child in field.field_type.fields}
        picked[field.name] = value
    return picked


class TestMetadataColumns:
    @pytest.mark.spec("PRJ-17", "RSV-02", "RSV-03", "RSV-04", "RSV-05", "RSV-06")
    def test_they_state_of_the_file_and_the_place_of_each_row(self, written):
        spec = PartitionSpec(PartitionField(2, 1001, "identity", "t"), spec_id=4)
        old = PartitionSpec(PartitionField(1, 1000, "bucket[4]", "n_bucket"), spec_id=3)
        rows = [dict(row, t=f"t{row['n'] % 2}") for row in ROWS]
        partition = partition_field(StructType(NestedField(1000, "n_bucket", "int"), NestedField(1001, "t", "string")))
        context = context_of(SCHEMA, "n", metadata=(FILE, POS, DELETED, SPEC_ID, partition), specs={3: old, 4: spec})
        tasks = [FileScanTask(task.file, parse("n > 20")) for task in written(SCHEMA, rows, spec)]
        found = read(tasks, context)
        assert len(found) == 39
        for row in found:
            task = next(task for task in tasks if task.file.file_path == row["_file"])
            assert row["_pos"] == row["n"] // 2, "counted in the file, whatever the filter left out"
            assert row["_spec_id"] == 4
            assert row["_deleted"] is False
            assert row["_partition"] == {"n_bucket": None, "t": task.file.partition[0]}

    def test_they_come_where_a_filter_reads_more_than_is_asked_for(self, written):
        context = context_of(SCHEMA, "s.x", metadata=(POS, FILE))
        (task,) = written(SCHEMA, ROWS)
        found = read([FileScanTask(task.file, parse("n = 7 and s.y = '7'"))], context)
        assert found == [{"s": {"x": 7 / 4}, "_pos": 7, "_file": task.file.file_path}]

    @pytest.mark.spec("RSV-05", "PART-07")
    def test_files_of_two_specs_are_stated_apart(self, written):
        specs = {number: PartitionSpec(spec_id=number) for number in (0, 1)}
        tasks = [task for number in (0, 1) for task in written(SCHEMA, ROWS[:1], specs[number])]
        context = context_of(SCHEMA, "n", metadata=(SPEC_ID,), specs=specs)
        assert [row["_spec_id"] for row in read(tasks, context)] == [0, 1]


class TestSplits:
    @pytest.mark.parametrize("text", ["n >= 0", "n < 700 or n > 3100"])
    def test_the_parts_of_a_file_give_each_row_once_at_its_position(self, written, text):
        rows = [{"n": n, "t": str(n) * 5, "s": None} for n in range(4_000)]
        small = {"write.parquet.row-group-size-bytes": "10000", "write.avro.block-size-bytes": "4096"}
        (task,) = written(SCHEMA, rows, properties=small)
        task = FileScanTask(task.file, parse(text))
        size = task.file.file_size_in_bytes
        cuts = [0, *range(1_000, size, 3_000), size]
        parts = [task.part(start, end - start) for start, end in pairwise(cuts)]
        assert len(parts) > 3
        found = read(parts, context_of(SCHEMA, "n", metadata=(POS,)))
        assert [row["n"] for row in found] == [row["_pos"] for row in found]
        assert [row["n"] for row in found] == [n for n in range(4_000) if "or" not in text or n < 700 or n > 3100]

    def test_tasks_travel(self, written):
        tasks = pickle.loads(pickle.dumps(written(SCHEMA, ROWS)))
        context = pickle.loads(pickle.dumps(context_of(SCHEMA, "n")))
        assert len(read(tasks, context)) == 60


class TestManyTasks:
    def tasks(self, written, files=12, rows=50):
        return [
            task
            for number in range(files)
            for task in written(SCHEMA, [{"n": number * rows + n, "t": None, "s": None} for n in range(rows)])
        ]

    @pytest.mark.parametrize("at", [[], [0], [7, 8, 41], list(range(0, 60, 2)), [59, 60, 99]])
    def test_rows_at_positions_come_alone(self, written, at):
        (task,) = written(SCHEMA, ROWS)
        positions = np.array(at, np.int64)
        found = [row for each in read_positions(task, context_of(SCHEMA), positions) for row in each.to_pylist()]
        assert [row["n"] for row in found] == [n for n in at if n < 60]
        filtered = FileScanTask(task.file, bind(SCHEMA, parse("n >= 8")))
        found = [row for each in read_positions(filtered, context_of(SCHEMA), positions) for row in each.to_pylist()]
        assert [row["n"] for row in found] == [n for n in at if 8 <= n < 60]

    @pytest.mark.parametrize("workers", [1, 2, 5])
    def test_rows_come_in_the_order_of_the_tasks(self, written, workers):
        tasks = self.tasks(written)
        found = read(tasks, context_of(SCHEMA, "n"), workers=workers)
        assert [row["n"] for row in found] == list(range(600))

    @pytest.mark.parametrize("limit", [0, 1, 50, 51, 599, 600, 10_000])
    def test_a_limit_gives_the_first_rows(self, written, limit):
        found = read(self.tasks(written), context_of(SCHEMA, "n"), limit=limit)
        assert [row["n"] for row in found] == list(range(min(limit, 600)))

    def test_a_small_limit_does_not_draw_all_tasks(self, written):
        tasks = self.tasks(written, files=20)
        drawn = []
        found = read((drawn.append(task) or task for task in tasks), context_of(SCHEMA, "n"), limit=3, workers=2)
        assert len(found) == 3
        assert len(drawn) < 10

    def test_a_missing_file_is_an_error_after_the_rows_before_it(self, written):
        tasks = self.tasks(written, files=3)
        gone = FileScanTask(replace(tasks[1].file, file_path="memory://read/gone"))
        batches = read_tasks([tasks[0], gone, tasks[2]], context_of(SCHEMA, "n"))
        assert next(batches)["n"].to_pylist() == list(range(50))
        with pytest.raises(FileMissing, match="memory://read/gone"):
            next(batches)


class TestImportedFiles:
    """Files without ids, as they are found in a folder."""

    def imported(self, table):
        location = f"memory://read/imported/{table.num_rows}-{'-'.join(table.column_names)}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        data = sink.getvalue().to_pybytes()
        with MemoryFileSystem().open_output(location) as out:
            out.write(data)
        return DataFile(file_path=location, file_format="PARQUET".lower(), record_count=table.num_rows,
                        file_size_in_bytes=len(data))  # fmt: skip

    @pytest.mark.spec("PRJ-05", "PRJ-08", "PRJ-09", "PRJ-10", "PRJ-11", "PRJ-12")
    def test_a_name_mapping_gives_their_columns_meaning(self):
        mapping = parse_name_mapping(
            '[{"field-id": 1, "names": ["id", "record_id"]}, {"names": ["junk"]}, {"field-id": 2, "names": ["a.b"]},'
            ' {"field-id": 3, "names": ["st"], "fields": [{"field-id": 4, "names": ["x", "old_x"]}]},'
            ' {"field-id": 9, "names": []}]'
        )
        schema = Schema(*SCHEMA.fields, NestedField(9, "nine", "int"))
        first = self.imported(
            pa.table({"junk": [1], "id": pa.array([5], pa.int32()), "a.b": ["q"], "st": [{"x": 1.5, "y": "?"}]})
        )
        second = self.imported(
            pa.table({"record_id": pa.array([6, 7], pa.int32()), "a": [{"b": "no"}] * 2, "st": [{"old_x": 2.5}, None]})
        )
        float_x = Schema(*SCHEMA.fields[:2], NestedField(3, "s", StructType(NestedField(4, "x", "double"),
                         NestedField(5, "y", "string"))), NestedField(9, "nine", "int"))  # fmt: skip
        assert schema.find_field(9)
        found = read([FileScanTask(first), FileScanTask(second)], context_of(float_x, name_mapping=mapping))
        assert found == [
            {"n": 5, "t": "q", "s": {"x": 1.5, "y": None}, "nine": None},
            {"n": 6, "t": None, "s": {"x": 2.5, "y": None}, "nine": None},
            {"n": 7, "t": None, "s": None, "nine": None},
        ]

    @pytest.mark.spec("PRJ-05")
    def test_a_filter_goes_by_the_mapped_columns(self):
        mapping = parse_name_mapping('[{"field-id": 1, "names": ["id"]}]')
        file = self.imported(pa.table({"t": ["a", "b", "c"], "id": pa.array([1, 2, 3], pa.int32())}))
        task = FileScanTask(file, parse("n >= 2"))
        assert read([task], context_of(SCHEMA, "n", name_mapping=mapping)) == [{"n": 2}, {"n": 3}]

    @pytest.mark.spec("PRJ-13", "PRJ-20")
    def test_without_a_mapping_nothing_is_guessed(self):
        file = self.imported(pa.table({"n": pa.array([1], pa.int32()), "t": ["a"]}))
        for name in ("n", "t"):
            with pytest.raises(InvalidFile, match=rf"no field ids .* '{name}'; .*schema\.name-mapping\.default"):
                read([FileScanTask(file)], context_of(SCHEMA, name))
        context = replace(context_of(SCHEMA), projection=Schema(POS))
        assert read([FileScanTask(file)], context) == [{"_pos": 0}]

    @pytest.mark.spec("PRJ-04")
    def test_partition_folders_of_hive_come_from_the_manifest(self):
        file = replace(self.imported(pa.table({"x": [1, 2]})), spec_id=1, partition=("2024", None))
        spec = PartitionSpec(
            PartitionField(2, 1000, "identity", "t"), PartitionField(1, 1001, "bucket[4]", "b"), spec_id=1
        )
        found = read([FileScanTask(file)], context_of(SCHEMA, "t", specs={1: spec}))
        assert found == [{"t": "2024"}, {"t": "2024"}]


class TestRefusals:
    def test_a_data_file_is_no_file_of_deletes(self, written):
        (task,) = written(SCHEMA, ROWS)
        delete = replace(task.file, content=DataFileContent.POSITION_DELETES)
        with pytest.raises(InvalidFile, match="no column 'file_path'"):
            read([FileScanTask(task.file, delete_files=(delete,))], context_of(SCHEMA))

    @pytest.mark.spec("MAN-45")
    @pytest.mark.parametrize("magic", [b"AGS1", b"PARE", b"\x9c\x01\x02\x03"])
    def test_encrypted_files_are_refused(self, written, magic):
        (task,) = written(SCHEMA, ROWS)
        location = task.file.file_path + ".encrypted"
        data = IO.read(task.file.file_path)
        IO.put(location, magic + bytes(byte ^ 0x5A for byte in data[4:]), PutMode.OVERWRITE)
        file = replace(task.file, file_path=location, key_metadata=b"k")
        with pytest.raises(UnsupportedFeature, match="is encrypted") as caught:
            read([FileScanTask(file)], context_of(SCHEMA))
        assert caught.value.data["location"] == location

    @pytest.mark.parametrize("key", [b"k", b"", bytes(40)])
    def test_plain_files_with_key_metadata_are_read(self, written, key):
        """Some writers set ``key_metadata`` on files that they do not encrypt."""
        (task,) = written(SCHEMA, ROWS)
        assert read([FileScanTask(replace(task.file, key_metadata=key))], context_of(SCHEMA)) == ROWS

    def test_a_damaged_file_is_named(self):
        location = "memory://read/damaged.parquet"
        with MemoryFileSystem().open_output(location) as out:
            out.write(b"PAR1 this is nothing PAR1")
        file = DataFile(file_path=location, file_format="parquet", record_count=1, file_size_in_bytes=25)
        with pytest.raises(InvalidFile, match=location):
            read([FileScanTask(file)], context_of(SCHEMA))


@pytest.mark.spec("TYP-10", "TYP-11", "TYP-30")
def test_the_zone_of_the_session_changes_no_timestamp(written, monkeypatch):
    schema = Schema(NestedField(1, "wall", "timestamp"), NestedField(2, "instant", "timestamptz"))
    pacific = dt.timezone(dt.timedelta(hours=-8))
    row = {
        "wall": dt.datetime(2017, 11, 16, 17, 10, 34),
        "instant": dt.datetime(2017, 11, 16, 17, 10, 34, tzinfo=pacific),
    }
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    tasks = written(schema, [row])
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    (found,) = read(tasks, context_of(schema))
    assert found["wall"] == row["wall"]
    assert found["instant"].utcoffset() == dt.timedelta(0)
    assert found["instant"] == dt.datetime(2017, 11, 17, 1, 10, 34, tzinfo=dt.UTC)


EDGES = {
    "boolean": [True, False, None],
    "int": [-(2**31), 2**31 - 1],
    "long": [-(2**63), 2**63 - 1],
    "float": [float("inf"), -0.0, 1.5],
    "double": [float("-inf"), 0.0, 5e-324],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "time": [dt.time(0), dt.time(23, 59, 59, 999999)],
    "timestamp": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "timestamptz": [dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)],
    "string": ["", "\U0001f600", None],
    "uuid": [bytes.fromhex("00112233445566778899aabbccddeeff")],
    "fixed[3]": [b"\0\1\2", None],
    "binary": [b"", b"\xff\0"],
    "decimal(38,0)": [Decimal("9" * 38), Decimal("-1")],
}


@pytest.mark.spec("TYP-02", "TYP-03", "TYP-04", "TYP-05", "TYP-06", "TYP-07", "TYP-08", "TYP-09", "TYP-10", "TYP-11",
                  "TYP-12", "TYP-13", "TYP-14", "TYP-15", "TYP-29")  # fmt: skip
@pytest.mark.parametrize("kind", EDGES)
def test_the_edges_of_each_type_come_back_from_each_format(written, kind):
    schema = Schema(NestedField(1, "v", kind), NestedField(2, "l", ListType(3, kind)))
    rows = [{"v": value, "l": [value, None]} for value in EDGES[kind]]
    found = read(written(schema, rows), context_of(schema))
    assert found == rows
    assert kind == "timestamptz" or repr(found) == repr(rows), "zeros keep their sign"
