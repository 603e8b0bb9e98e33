"""Reading manifests: other writers' orders, names and versions of fields, and the values that entries inherit."""

import io as _io
import math
import struct
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from foreign_manifests import ENTRY_FIELDS, FILE_FIELDS, Foreign, avro_field, map_of, put, read
from icefield.errors import InvalidMetadata, UnsupportedFeature
from icefield.manifest import (
    ALL_COLUMNS,
    PLAN_COLUMNS,
    DataFileContent,
    ManifestContent,
    ManifestFile,
    clear_caches,
    read_manifest,
    stored_partition_type,
)
from icefield.manifest import schemas as f
from icefield.manifest.cache import FILES
from icefield.manifest.decoded import ManifestRequest
from icefield.manifest.manifest_file import UNASSIGNED
from icefield.manifest.reader import ManifestReader
from icefield.manifest.statistics import as_map, map_column
from icefield.scan.planning.manifest_reads import manifest_groups
from planned_tables import PlannedTable, spec
from vectors import VECTORS

STATUS = {"EXISTING": 0, "ADDED": 1, "DELETED": 2}


@pytest.fixture
def made() -> PlannedTable:
    return PlannedTable()


@pytest.mark.spec("MAN-10", "MAN-11", "MAN-14", "MAN-16", "VER-03")
@pytest.mark.parametrize("row", VECTORS["sequence_inheritance"])
def test_only_added_entries_inherit_their_sequence_numbers(made: PlannedTable, row: dict[str, Any]) -> None:
    if row.get("v1_manifest"):
        foreign = Foreign(made, {k: v for k, v in ENTRY_FIELDS.items() if not k.endswith("sequence_number")})
        foreign.header = {}
        entry = foreign.row("a", STATUS[row["status"]], snapshot_id=5)
    else:
        foreign = Foreign(made)
        numbers = {key: row[key] for key in ("sequence_number", "file_sequence_number")}
        entry = foreign.row("a", STATUS[row["status"]], **numbers)
    manifest = foreign.write([entry], sequence_number=row["manifest_seq"])
    if row.get("error"):
        with pytest.raises(InvalidMetadata, match="sequence number") as caught:
            read(made, manifest)
        assert caught.value.data["location"] == manifest.manifest_path
        return
    entries = read(made, manifest)
    assert entries.column(f.SEQUENCE_NUMBER).to_pylist() == [row["data_seq"]]
    assert entries.column(f.FILE_SEQUENCE_NUMBER).to_pylist() == [row["file_seq"]]


@pytest.mark.spec("MAN-10", "MAN-11", "MAN-14")
def test_entries_of_one_manifest_inherit_one_by_one_and_an_old_deletion_may_lack_its_number(made: PlannedTable) -> None:
    foreign = Foreign(made)
    rows = [
        foreign.row("a", 1),
        foreign.row("b", 0, sequence_number=3, file_sequence_number=2),
        foreign.row("c", 2),
        foreign.row("d", 1, sequence_number=5),
    ]
    entries = read(made, foreign.write(rows, sequence_number=9))
    assert entries.column(f.SEQUENCE_NUMBER).to_pylist() == [9, 3, None, 5]
    assert entries.column(f.FILE_SEQUENCE_NUMBER).to_pylist() == [9, 2, None, 9]


@pytest.mark.spec("MAN-09", "MAN-10", "MAN-11", "MAN-14", "MAN-20")
def test_manifests_read_together_inherit_from_their_own_manifest(made: PlannedTable) -> None:
    foreign = Foreign(made)
    rows = [
        foreign.row("a", 1),
        foreign.row("b", 0, sequence_number=3, file_sequence_number=2, snapshot_id=44),
        foreign.row("c", 2),
        foreign.row("d", 1, sequence_number=5),
    ]
    old = [foreign.row("e", 0), foreign.row("f", 2), foreign.row("g", 1)]  # number 0 is inherited by every entry
    manifests = [
        foreign.write(rows, sequence_number=9, added_snapshot_id=7, first_row_id=100),
        foreign.write(rows[:1], sequence_number=UNASSIGNED, added_snapshot_id=8),
        foreign.write(old, sequence_number=0, added_snapshot_id=9, first_row_id=10),
        foreign.write(rows[::-1], sequence_number=6, added_snapshot_id=10),
    ]
    alone = [read(made, manifest) for manifest in manifests]
    clear_caches()
    typed = [(manifest, made.specs[0].partition_type(made.schema)) for manifest in manifests]
    together = ManifestReader(made.io).read_together(typed, ManifestRequest(), [None] * 4)
    for number in (f.SNAPSHOT_ID, f.SEQUENCE_NUMBER, f.FILE_SEQUENCE_NUMBER, f.FIRST_ROW_ID):
        found = [entries.column(number).to_pylist() for entries in together]
        assert found == [entries.column(number).to_pylist() for entries in alone]
    assert [entries.column(f.SEQUENCE_NUMBER).to_pylist() for entries in together] == [
        [9, 3, None, 5],
        [None],
        [0, 0, 0],
        [5, None, 3, 6],
    ]
    assert together[1].column(f.SNAPSHOT_ID).to_pylist() == [8]
    assert together[2].column(f.FIRST_ROW_ID).to_pylist() == [10, None, 20]


def test_columns_that_repeat_those_of_an_earlier_manifest_take_its_memory(made: PlannedTable) -> None:
    foreign = Foreign(made)
    reader, kind = ManifestReader(made.io), made.specs[0].partition_type(made.schema)
    counts = [[10, 10, 10], [10, 10], [10, 10, 10], [10, 11, 10]]
    read_apart = []
    for number, of_manifest in enumerate(counts):
        rows = [foreign.row(f"{number}-{at}", record_count=count) for at, count in enumerate(of_manifest)]
        read_apart.append(reader.read(foreign.write(rows, sequence_number=5 + number // 3), kind))
    for number in (f.FILE_FORMAT, f.FILE_SIZE, f.SNAPSHOT_ID, f.CONTENT):
        places = {entries.column(number).buffers()[-1].address for entries in read_apart}
        assert len(places) == 1, number
    for number in (f.RECORD_COUNT, f.SEQUENCE_NUMBER):
        places = [entries.column(number).buffers()[-1].address for entries in read_apart]
        assert places[0] == places[1] == places[2] != places[3]
    assert [entries.column(f.RECORD_COUNT).to_pylist() for entries in read_apart] == counts
    paths = [entries.column(f.FILE_PATH).to_pylist() for entries in read_apart]
    assert paths == [[made.path(f"{number}-{at}") for at in range(len(each))] for number, each in enumerate(counts)]


def test_zeros_of_both_signs_in_partitions_stay_what_they_are() -> None:
    made = PlannedTable(specs=[spec((4, "identity", "score"))])
    for zero in (0.0, -0.0):
        made.add([made.file(partition=(zero,))])
    reader, kind = ManifestReader(made.io), made.specs[0].partition_type(made.schema)
    found = [reader.read(manifest, kind).partition.field(0)[0].as_py() for manifest in made.manifests]
    assert [math.copysign(1, zero) for zero in found] == [1, -1]


@pytest.mark.parametrize("damage", [{"status": 3}, {"status": 0, "file_sequence_number": 2}, {"content": 2}])
def test_a_damaged_manifest_among_others_is_named_and_those_before_it_are_read(
    made: PlannedTable, damage: dict[str, Any]
) -> None:
    foreign = Foreign(made)
    wrong = foreign.row("b", **damage)
    manifests = [foreign.write([row]) for row in (foreign.row("a"), wrong, foreign.row("c"))]
    kind = made.specs[0].partition_type(made.schema)
    reader = ManifestReader(made.io)
    for manifest in manifests:
        FILES.put(reader._file_key(manifest), made.io.read(manifest.manifest_path))
    groups = manifest_groups(reader, [(manifest, kind) for manifest in manifests], ManifestRequest())
    assert [len(entries) for entries in next(groups)] == [1]
    with pytest.raises(InvalidMetadata) as raised:
        next(groups)
    assert raised.value.data["location"] == manifests[1].manifest_path


@pytest.mark.spec("MAN-16", "VER-03")
def test_files_of_a_v1_manifest_have_number_zero_even_when_the_list_says_otherwise(made: PlannedTable) -> None:
    foreign = Foreign(made, {k: v for k, v in ENTRY_FIELDS.items() if not k.endswith("sequence_number")})
    for header in ({}, {"format-version": "1"}):
        foreign.header = header
        entries = read(made, foreign.write([foreign.row("a", 1), foreign.row("b", 0)], sequence_number=7))
        assert entries.column(f.SEQUENCE_NUMBER).to_pylist() == [0, 0]


@pytest.mark.spec("MAN-09")
def test_a_missing_snapshot_id_is_the_manifest_s(made: PlannedTable) -> None:
    foreign = Foreign(made)
    rows = [foreign.row("a"), foreign.row("b", snapshot_id=44)]
    assert read(made, foreign.write(rows)).column(f.SNAPSHOT_ID).to_pylist() == [1000, 44]
    foreign.entry = {k: v for k, v in ENTRY_FIELDS.items() if k != "snapshot_id"}
    assert read(made, foreign.write([foreign.row("a")])).column(f.SNAPSHOT_ID).to_pylist() == [1000]


@pytest.mark.spec("MAN-20", "MAN-49", "ROW-12")
def test_first_row_ids_are_inherited_in_order(made: PlannedTable) -> None:
    example = VECTORS["row_lineage_example"]
    first = next(m["first_row_id"] for m in example["manifests"] if m["name"] == "added1")
    foreign = Foreign(made, file={**FILE_FIELDS, "first_row_id": (142, ["null", "long"])})
    rows = [
        foreign.row(
            str(i),
            entry["status"],
            sequence_number=1,
            file_sequence_number=1,
            record_count=entry["record_count"],
            first_row_id=entry["stored"],
        )
        for i, entry in enumerate(example["added1_entries"])
    ]
    entries = read(made, foreign.write(rows, first_row_id=first))
    assert entries.column(f.FIRST_ROW_ID).to_pylist() == [entry["effective"] for entry in example["added1_entries"]]
    without = read(made, foreign.write(rows, first_row_id=None))
    assert without.column(f.FIRST_ROW_ID).to_pylist() == [entry["stored"] for entry in example["added1_entries"]]


@pytest.mark.spec("MAN-20")
def test_deleted_entries_and_delete_files_inherit_no_row_id(made: PlannedTable) -> None:
    foreign = Foreign(made)
    numbers = {"sequence_number": 1, "file_sequence_number": 1}
    rows = [foreign.row("a"), foreign.row("b", 2, **numbers), foreign.row("c")]
    assert read(made, foreign.write(rows, first_row_id=100)).column(f.FIRST_ROW_ID).to_pylist() == [100, None, 110]
    deletes = foreign.write([foreign.row("d", content=1)], first_row_id=100, content=ManifestContent.DELETES)
    assert read(made, deletes).column(f.FIRST_ROW_ID).to_pylist() == [None]


@pytest.mark.spec("MAN-02", "ML-23", "MAN-53", "MAN-37", "MAN-36", "VER-06")
def test_fields_are_found_by_id_whatever_their_names_and_order_and_others_are_ignored(made: PlannedTable) -> None:
    file = {f"x_{name}": kind for name, kind in reversed(FILE_FIELDS.items())}
    stats = {"type": "record", "name": "content_stats", "fields": [avro_field("q", 900, "string")]}
    file |= {"content_stats": (146, stats), "block": (105, "long"), "counts": (111, map_of(123, "long"))}
    file |= {"own": (7777, "string")}
    foreign = Foreign(made, {"what": (0, "int"), "snapshot_id": (1, ["null", "long"])}, file)
    row = {
        "what": 1,
        "snapshot_id": 6,
        "data_file": {
            "x_content": 0,
            "x_file_path": "memory://x/a.parquet",
            "x_file_format": "pArQuEt",
            "x_partition": {},
            "x_record_count": 3,
            "x_file_size_in_bytes": 4,
            "content_stats": {"q": "?"},
            "block": 5,
            "counts": [{"key": 1, "value": 2}],
            "own": "?",
        },
    }
    entries = read(made, foreign.write([row, row], codec="null"), columns=ALL_COLUMNS)
    [file_, _] = entries.data_files()
    assert (file_.file_path, file_.file_format, file_.record_count) == ("memory://x/a.parquet", "parquet", 3)
    assert entries.column(f.SNAPSHOT_ID).to_pylist() == [6, 6]
    assert entries.column(f.COLUMN_SIZES).null_count == 2


@pytest.mark.spec("MAN-54", "MAN-55", "MAN-30")
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_field_but_those_that_all_versions_require_may_be_missing(made: PlannedTable, version: int) -> None:
    required = {
        row["id"]
        for table in ("manifest_entry_fields", "data_file_fields")
        for row in VECTORS[table]
        if row["v1"] == row["v2"] == "required"
    }
    foreign = Foreign(
        made,
        {k: v for k, v in ENTRY_FIELDS.items() if v[0] in required},
        {k: v for k, v in FILE_FIELDS.items() if v[0] in required},
    )
    foreign.header = {"format-version": str(version)}
    entries = read(made, foreign.write([foreign.row("a")]), columns=ALL_COLUMNS)
    [file] = entries.data_files()
    assert file.content is DataFileContent.DATA
    assert (file.lower_bounds, file.split_offsets, file.sort_order_id) == ({}, None, None)
    for missing in required - {2, 102, 1}:
        part = Foreign(
            made,
            {k: v for k, v in foreign.entry.items() if v[0] != missing},
            {k: v for k, v in foreign.file.items() if v[0] != missing},
        )
        manifest = part.write([part.row("a")])
        with pytest.raises(InvalidMetadata) as caught:
            read(made, manifest)
        assert caught.value.data["location"] == manifest.manifest_path


@pytest.mark.spec("MAN-05", "MAN-06", "MAN-04", "VER-11")
def test_the_header_may_lack_everything_but_a_later_version_is_refused(made: PlannedTable) -> None:
    foreign = Foreign(made)
    foreign.header = {}
    assert len(read(made, foreign.write([foreign.row("a")]))) == 1
    for form in ('[{"source-id":1,"transform":"identity","name":"id"}]', '{"spec-id":0,"fields":[]}'):
        foreign.header = {"partition-spec": form, "format-version": "2"}
        assert len(read(made, foreign.write([foreign.row("a")]))) == 1
    foreign.header = {"format-version": "4"}
    with pytest.raises(UnsupportedFeature):
        read(made, foreign.write([foreign.row("a")]))
    foreign.header = {"format-version": "two"}
    with pytest.raises(InvalidMetadata):
        read(made, foreign.write([foreign.row("a")]))


def test_a_manifest_without_any_ids_is_read_by_the_specification_s_names(made: PlannedTable) -> None:
    fields = [{"name": k, "type": kind} for k, (_, kind) in FILE_FIELDS.items()]
    schema = {
        "type": "record",
        "name": "e",
        "fields": [
            {"name": "status", "type": "int"},
            {"name": "data_file", "type": {"type": "record", "name": "d", "fields": fields}},
        ],
    }
    out = _io.BytesIO()
    data = Foreign(made).row("a")["data_file"]
    fastavro.writer(out, schema, [{"status": 1, "data_file": data}])
    assert next(read(made, put(made, out.getvalue())).data_files()).file_path == made.path("a")


@pytest.mark.spec("SVS-18", "PART-07")
def test_partition_values_written_before_a_promotion_or_as_plain_integers_are_read_as_the_spec_says() -> None:
    by_day = spec((3, "day", "d"), (1, "identity", "id"), (2, "identity", "gone"))
    made = PlannedTable(specs=[by_day])
    record = {
        "type": "record",
        "name": "r102",
        "fields": [
            avro_field("other_name", 1001, ["null", "int"]),
            avro_field("d", 1000, ["null", "int"]),
        ],
    }
    foreign = Foreign(made, file={**FILE_FIELDS, "partition": (102, record)})
    rows = [foreign.row("a", partition={"d": -1, "other_name": 5}), foreign.row("b", partition={})]
    entries = read(made, foreign.write(rows))
    assert entries.partition.type == pa.struct([("d", pa.date32()), ("id", pa.int64()), ("gone", pa.string())])
    assert [file.partition for file in entries.data_files()] == [(-1, 5, None), (None, None, None)]


@pytest.mark.spec("PART-19")
def test_values_under_an_unknown_transform_are_read_as_strings_where_string_is_asked_for() -> None:
    known, unknown = spec((1, "bucket[4]", "b")), spec((1, "zorder[3]", "b"))
    made = PlannedTable(specs=[known])
    manifest = made.write([made.file(partition=(3,)), made.file(partition=(None,))]).assigned(1000, 1)
    made.specs = [unknown]
    assert [file.partition for file in read(made, manifest).data_files()] == [("3",), (None,)]
    stored = read_manifest(made.io, manifest, stored_partition_type(unknown, made.schema))
    assert [file.partition for file in stored.data_files()] == [(3,), (None,)]
    with pytest.raises(UnsupportedFeature, match="transform"):
        made.write([made.file(partition=("3",))])


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [
        ("file_path", "long", 5),
        ("record_count", "string", "many"),
        ("partition", "int", 3),
        ("file_format", {"type": "array", "items": "int"}, [1]),
        ("content", "boolean", True),
        ("column_sizes", {"type": "array", "items": "int"}, [1]),
        ("lower_bounds", map_of(126, "long"), []),
        ("value_counts", map_of(119, "bytes"), []),
    ],
)
def test_a_field_of_the_wrong_type_is_refused(made: PlannedTable, name: str, kind: Any, value: Any) -> None:
    ids = {rule.name: rule.field_id for rule in f.DATA_FILE_FIELDS}
    foreign = Foreign(made, file={**FILE_FIELDS, name: (ids[name], kind)})
    manifest = foreign.write([foreign.row("a", **{name: value})])
    with pytest.raises(InvalidMetadata) as caught:
        read(made, manifest, columns=ALL_COLUMNS)
    assert caught.value.data["location"] == manifest.manifest_path


@pytest.mark.parametrize(
    ("values", "content"),
    [
        ({"status": 3}, ManifestContent.DATA),
        ({"status": -1}, ManifestContent.DATA),
        ({"content": 1}, ManifestContent.DATA),
        ({"content": 0}, ManifestContent.DELETES),
        ({"content": 3}, ManifestContent.DELETES),
    ],
)
@pytest.mark.spec("MAN-07", "MAN-19", "MAN-30")
def test_an_entry_whose_status_or_content_cannot_be_is_refused(
    made: PlannedTable, values: dict[str, int], content: ManifestContent
) -> None:
    foreign = Foreign(made)
    manifest = foreign.write([foreign.row("a", **values)], content=content)
    with pytest.raises(InvalidMetadata):
        read(made, manifest)


def test_an_entry_without_what_it_must_have_is_refused(made: PlannedTable) -> None:
    for name in ("file_path", "file_format", "record_count", "file_size_in_bytes"):
        number, kind = FILE_FIELDS[name]
        foreign = Foreign(made, file={**FILE_FIELDS, name: (number, ["null", kind])})
        with pytest.raises(InvalidMetadata, match=name):
            read(made, foreign.write([foreign.row("a"), foreign.row("b", **{name: None})]))


@pytest.mark.spec("MAN-25")
def test_only_the_statistics_that_are_asked_for_are_read(made: PlannedTable) -> None:
    bounds = {"id": (1, 9), "name": ("a", "b")}
    manifest = made.write([made.file(bounds=bounds), made.file()]).assigned(1000, 1)
    clear_caches()
    entries = read(made, manifest)
    assert set(entries.columns) <= PLAN_COLUMNS
    clear_caches()
    single = read(made, manifest, statistics={f.LOWER_BOUNDS: frozenset({1, 77}), f.VALUE_COUNTS: frozenset({1})})
    assert f.LOWER_BOUNDS not in single.columns
    assert single.statistic(f.LOWER_BOUNDS, 1).to_pylist() == [struct.pack("<q", 1), None]
    assert single.statistic(f.VALUE_COUNTS, 1).to_pylist() == [100, None]
    assert single.statistic(f.LOWER_BOUNDS, 77) is None
    assert single.statistic(f.LOWER_BOUNDS, 2) is None
    whole = read(made, manifest, columns=ALL_COLUMNS)
    assert whole.statistic(f.LOWER_BOUNDS, 2).to_pylist() == [b"a", None]


@pytest.mark.spec("MAN-18", "SCAN-02")
def test_live_entries_are_those_that_are_not_deleted(made: PlannedTable) -> None:
    foreign = Foreign(made)
    numbers = {"sequence_number": 1, "file_sequence_number": 1}
    entries = read(made, foreign.write([foreign.row("a"), foreign.row("b", 2), foreign.row("c", 0, **numbers)]))
    live = entries.live()
    assert live is not None
    assert live.tolist() == [True, False, True]
    assert [file.file_path for file in entries.filter(live).data_files()] == [made.path("a"), made.path("c")]
    assert read(made, foreign.write([foreign.row("a")])).live() is None


def test_a_field_of_a_file_that_was_not_read_is_none(made: PlannedTable) -> None:
    entries = read(made, made.write([made.file()]).assigned(1000, 1), columns=[f.FILE_PATH])
    (file,) = entries.data_files()
    assert (file.record_count, file.file_size_in_bytes, file.file_format) == (None, None, None)


@pytest.mark.parametrize("columns", [PLAN_COLUMNS, ALL_COLUMNS])
def test_a_manifest_without_entries_is_read(made: PlannedTable, columns: frozenset[int]) -> None:
    entries = read(made, made.write([]).assigned(1000, 1), columns=columns)
    assert len(entries) == 0
    assert list(entries.data_files()) == []


def test_values_of_one_key_are_taken_out_of_maps_in_any_form() -> None:
    kind = pa.map_(pa.int32(), pa.int64())
    ragged = pa.array([[(1, 10), (2, 20)], [], None, [(2, 21)], [(3, 1), (2, 22), (2, 23)]], kind)
    assert map_column(ragged, 2).to_pylist() == [20, None, None, 21, 23]
    assert map_column(ragged.slice(3), 2).to_pylist() == [21, 23]
    assert map_column(ragged, 9) is None
    even = pa.array([[(1, 1)], [(1, 2)], [(1, 3)]], kind)
    assert map_column(even, 1).to_pylist() == [1, 2, 3]
    assert map_column(even.slice(1, 1), 1).to_pylist() == [2]
    lists = ragged.cast(pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())])))
    assert map_column(as_map(lists, kind), 2).to_pylist() == [20, None, None, 21, 23]


@pytest.mark.spec("VER-03", "MAN-16", "VER-13")
@pytest.mark.parametrize("version", [1, 2])
def test_manifests_of_pyiceberg_are_read(version: Any, tmp_path: Any) -> None:
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import DataFile as TheirFile
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import DayTransform
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType, NestedField, StringType, TimestampType

    schema = Schema(
        NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "ts", TimestampType())
    )
    theirs = PartitionSpec(PartitionField(3, 1000, DayTransform(), "d"), spec_id=0)
    made = PlannedTable(specs=[spec((3, "day", "d"))], format_version=version, location=f"file://{tmp_path}")
    location = made.path("m0.avro")
    output = PyArrowFileIO().new_output(location)
    with write_manifest(version, theirs, schema, output, 77, "deflate") as writer:
        for i in range(50):
            file = TheirFile.from_args(
                content=0,
                file_path=made.path(f"data/{i}.parquet"),
                file_format="PARQUET",
                partition=Record(19000 + i),
                record_count=i,
                file_size_in_bytes=i * 10,
                column_sizes={1: i},
                value_counts={1: i, 2: i},
                null_value_counts={1: 0},
                nan_value_counts={},
                lower_bounds={1: struct.pack("<q", i)},
                upper_bounds={1: struct.pack("<q", i + 1)},
                key_metadata=None,
                split_offsets=[4],
                equality_ids=None,
                sort_order_id=None,
            )
            file.spec_id = 0
            writer.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=77, data_file=file))
        manifest = writer.to_manifest_file()
    mine = ManifestFile(
        manifest_path=location,
        manifest_length=manifest.manifest_length,
        added_snapshot_id=77,
        sequence_number=5 if version > 1 else 0,
    )
    entries = read(made, mine, columns=ALL_COLUMNS)
    files = list(entries.data_files())
    assert [(file.record_count, file.partition) for file in files] == [(i, (19000 + i,)) for i in range(50)]
    assert files[7].lower_bounds == {1: struct.pack("<q", 7)}
    assert files[7].value_counts == {1: 7, 2: 7}
    assert set(entries.column(f.SEQUENCE_NUMBER).to_pylist()) == {5 if version > 1 else 0}
