"""Arrays of metadata behave as tuples do, whether decoded or not."""

import pickle

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidMetadata
from icefield.metadata.codecs import SNAPSHOT_LOG, SNAPSHOTS
from icefield.metadata.entries import SnapshotLogEntry
from icefield.metadata.json_array import JsonArray
from icefield.metadata.snapshots import Snapshot


def snapshot(number: int) -> Snapshot:
    return Snapshot(
        snapshot_id=number, timestamp_ms=number, summary={"operation": "append"}, manifest_list=f"m{number}"
    )


def text_of(numbers: list[int], blanks: str = "") -> bytes:
    parts = [msgspec.json.encode(snapshot(number)).decode() for number in numbers]
    return f"[{blanks}{f'{blanks},{blanks}'.join(parts)}{blanks}]".encode()


@settings(deadline=None)
@given(
    start=st.lists(st.integers(1, 50), unique=True, max_size=6),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.lists(st.integers(51, 10**6), max_size=3)),
            st.tuples(st.just("drop"), st.lists(st.integers(1, 60), max_size=4)),
            st.tuples(st.just("head"), st.integers(0, 9)),
            st.tuples(st.just("look"), st.integers(0, 9)),
        ),
        max_size=8,
    ),
    blanks=st.sampled_from(["", " ", "\n\t "]),
)
def test_whatever_is_done_to_it_an_array_is_the_sequence_of_its_elements(start, steps, blanks):
    array, model = JsonArray(SNAPSHOTS, text_of(start, blanks)), list(start)
    for step, argument in steps:
        if step == "add":
            new = [number for number in dict.fromkeys(argument) if number not in model]
            array, model = array.extended(map(snapshot, new)), model + new
        elif step == "drop":
            array, model = array.without(set(argument)), [number for number in model if number not in argument]
        elif step == "head":
            array, model = array.kept(range(min(argument, len(model)))), model[:argument]
        elif argument < len(model):
            assert array[argument] == snapshot(model[argument])
    assert len(array) == len(model)
    assert [record.snapshot_id for record in array.records] == model
    assert list(array) == [snapshot(number) for number in model]
    assert array.positions == {number: i for i, number in enumerate(model)}
    again = JsonArray(SNAPSHOTS, bytes(array.raw())).checked()
    assert again == array
    assert pickle.loads(pickle.dumps(array)) == array
    for number in model:
        assert array.find(number) is array.find(number)
        assert again.find(number) == snapshot(number)
    assert array.find(-5) is None


def test_it_indexes_slices_and_refuses_as_a_tuple_does():
    array = JsonArray(SNAPSHOTS, text_of([1, 2, 3]))
    assert array[-1] == snapshot(3)
    assert array[0:2] == (snapshot(1), snapshot(2))
    assert snapshot(2) in array
    assert list(reversed(array)) == [snapshot(3), snapshot(2), snapshot(1)]
    assert array.index(snapshot(2)) == 1
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            array[beyond]
    with pytest.raises(TypeError):
        hash(array)
    assert array != [1, 2, 3]
    assert array != JsonArray(SNAPSHOT_LOG, b"[]")


def test_what_was_there_is_not_changed_by_what_is_added():
    array = JsonArray(SNAPSHOTS, text_of([1]))
    longer = array.extended([snapshot(2)])
    other = array.extended([snapshot(3)])
    assert (len(array), array.find(2)) == (1, None)
    assert longer.find(2) is not None
    assert other.find(2) is None
    assert bytes(array.raw()) == text_of([1])


def test_elements_are_equal_whatever_their_string():
    plain, spaced = JsonArray(SNAPSHOTS, text_of([1, 2])), JsonArray(SNAPSHOTS, text_of([1, 2], " "))
    assert plain == spaced
    assert plain != JsonArray(SNAPSHOTS, text_of([2, 1]))
    assert plain != JsonArray(SNAPSHOTS, text_of([1]))


def test_damage_names_the_location_the_array_and_the_element():
    array = JsonArray(SNAPSHOTS, b'[{"snapshot-id":1,"timestamp-ms":1,"manifest-list":7}]', "s3://file")
    with pytest.raises(InvalidMetadata, match=r"s3://file: 'snapshots'\[0\].*manifest-list"):
        array[0]
    for empty in (b'"manifest-list":""', b'"manifests":[""]'):
        with pytest.raises(InvalidMetadata, match=r"s3://file: 'snapshots'\[0\].*manifest"):
            JsonArray(SNAPSHOTS, b'[{"snapshot-id":1,"timestamp-ms":1,' + empty + b"}]", "s3://file")[0]
    with pytest.raises(InvalidMetadata, match="s3://file: 'snapshots'"):
        len(JsonArray(SNAPSHOTS, b'{"a":1}', "s3://file"))
    with pytest.raises(InvalidMetadata, match="same id"):
        JsonArray(SNAPSHOTS, text_of([1, 1])).checked()


def test_an_array_whose_record_is_the_element_is_decoded_once():
    log = JsonArray(SNAPSHOT_LOG, b'[{"timestamp-ms":1,"snapshot-id":2}]').extended([SnapshotLogEntry(3, 4)])
    assert log[0] is log.records[0]
    assert [(entry.timestamp_ms, entry.snapshot_id) for entry in log] == [(1, 2), (3, 4)]
