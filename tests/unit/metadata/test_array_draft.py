"""A draft of an array behaves as a list of its elements, also between two changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from icefield.metadata.array_draft import ArrayDraft
from icefield.metadata.codecs import SCHEMAS, STATISTICS
from icefield.metadata.entries import StatisticsFile
from icefield.metadata.json_array import JsonArray
from icefield.schema import Schema
from icefield.types import LongType, NestedField

NUMBERS = st.integers(1, 6)


def statistics(number: int, mark: int) -> StatisticsFile:
    return StatisticsFile(number, f"s3://{number}/{mark}", 1, 1, ())


def schema(number: int, content: int) -> Schema:
    return Schema(NestedField(1, f"c{content}", LongType()), schema_id=number)


@given(
    st.lists(NUMBERS, max_size=8),
    st.lists(st.tuples(st.sampled_from(["add", "drop", "drop through", "look"]), NUMBERS), max_size=20),
)
def test_elements_are_added_and_removed_by_ids_that_several_may_have(start, steps) -> None:
    model = [statistics(number, mark) for mark, number in enumerate(start)]
    before = JsonArray.of(STATISTICS, model)
    text, draft = bytes(before.raw()), ArrayDraft(before)
    for mark, (step, number) in enumerate(steps, len(start)):
        held = [place for place, each in enumerate(model) if each.snapshot_id == number]
        if step == "add":
            added = statistics(number, mark)
            draft.add(added)
            model.append(added)
        elif step == "look":
            assert list(draft) == model
        elif held and step == "drop":
            draft.drop([number])
            model = [each for each in model if each.snapshot_id != number]
        elif held:
            draft.drop_through([number])
            model = model[held[-1] + 1 :]
        last = draft.last_record()
        assert (last and last.snapshot_id) == (model[-1].snapshot_id if model else None)
        for each in range(1, 7):
            newest = next((found for found in reversed(model) if found.snapshot_id == each), None)
            assert draft.find(each) == newest
            assert draft.has(each) == (newest is not None)
    assert list(draft.array()) == model
    assert draft.array().raw() == JsonArray.of(STATISTICS, model).raw()
    assert bytes(before.raw()) == text


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), unique_by=lambda pair: pair[0], max_size=6),
    st.lists(st.tuples(st.booleans(), NUMBERS), max_size=20),
)
def test_the_next_id_and_the_first_of_a_content_are_those_of_what_is_left(start, steps) -> None:
    model = dict(start)
    draft = ArrayDraft(JsonArray.of(SCHEMAS, [schema(number, content) for number, content in start]))
    for adds, number in steps:
        following = max(model, default=-1) + 1
        assert draft.next_id() == following
        if adds:
            draft.add(schema(following, number))
            model[following] = number
        elif number in model:
            draft.drop([number])
            del model[number]
        for content in range(1, 7):
            found = draft.alike(schema(0, content))
            wanted = next((id_ for id_, held in model.items() if held == content), None)
            assert (found and found.schema_id) == wanted
    assert [(each.schema_id, each.fields[0].name) for each in draft.array()] == [(i, f"c{c}") for i, c in model.items()]
    assert draft.array().next_id() == max(model, default=-1) + 1


def test_elements_go_up_to_the_last_of_several_ids() -> None:
    model = [statistics(number, number) for number in (1, 2, 3, 4)]
    draft = ArrayDraft(JsonArray.of(STATISTICS, model))
    draft.drop_through([3, 1])
    assert list(draft) == model[3:]
