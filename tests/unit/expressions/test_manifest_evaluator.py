"""Pruning of manifests by the summaries in a manifest list."""

import math
import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression
from icefield.expressions import (
    AlwaysTrue,
    EqualTo,
    FieldSummaries,
    PartitionSummaries,
    bind,
    has_live_files,
    manifests_may_match,
    parse,
)
from icefield.types import NestedField, StructType, parse_type
from icefield.types.values import value_to_bytes
from naive_filters import NAN, TYPES, cells, naive, predicates
from naive_statistics import _order, _zero
from vectors import VECTORS


def partition_type(*kinds):
    return StructType(*(NestedField(1000 + i, f"p{i}", parse_type(kind)) for i, kind in enumerate(kinds)))


def summary_of(kind, values):
    """The summary that a correct writer states for the partition values in a manifest."""
    usual = [value for value in values if value is not None and value == value]
    lower, upper = (min(usual, key=_order), max(usual, key=_order)) if usual else (None, None)
    field_type = parse_type(kind)
    return (
        None in values,
        any(isinstance(value, float) and math.isnan(value) for value in values),
        None if lower is None else value_to_bytes(field_type, _zero(lower, -0.0)),
        None if upper is None else value_to_bytes(field_type, _zero(upper, 0.0)),
    )


def arrays(summaries):
    """A list of summaries as the four arrays of a manifest list's column."""
    kinds = (pa.bool_(), pa.bool_(), pa.binary(), pa.binary())
    return tuple(pa.array([one[part] for one in summaries], kind) for part, kind in enumerate(kinds))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.spec("SCAN-18", "ML-13", "ML-14", "ML-15", "ML-16")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_manifest_with_a_matching_partition_is_never_left_out(kind, data):
    manifests = data.draw(st.lists(st.lists(cells(kind), min_size=1, max_size=5), min_size=1, max_size=4))
    summaries = [list(summary_of(kind, values)) for values in manifests]
    for one in summaries:
        # Old writers do not state whether there is NaN; a summary, or a field of it, may be missing.
        if data.draw(st.integers(0, 4)) == 0:
            one[1] = None
        if data.draw(st.integers(0, 6)) == 0:
            one[:] = [None] * 4
    struct_type = partition_type(kind)
    bound = bind(struct_type, data.draw(predicates("p0", kind)))
    decoded = PartitionSummaries.decode(struct_type, len(manifests), [arrays(summaries)])
    kept = manifests_may_match(bound, decoded)
    assert kept.dtype == np.bool_
    for values, keep in zip(manifests, kept, strict=True):
        matching = [value for value in values if naive(bound, {"p0": value}, nan_is_greatest=True) is True]
        assert keep or not matching, (str(bound), values)


@pytest.mark.parametrize("kind", ["int", "string", "decimal(9,2)"])
@pytest.mark.spec("SCAN-18", "ML-15")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_full_summaries_prune_all_that_they_can_state_of_ranges(kind, data):
    values = data.draw(st.lists(cells(kind), min_size=1, max_size=5))
    struct_type = partition_type(kind)
    wanted = predicates("p0", kind).filter(lambda e: e.op.value in ("<", "<=", ">", ">=", "is null", "is not null"))
    bound = bind(struct_type, data.draw(wanted))
    decoded = PartitionSummaries.decode(struct_type, 1, [arrays([summary_of(kind, values)])])
    expected = any(naive(bound, {"p0": value}) is True for value in values)
    assert manifests_may_match(bound, decoded).tolist() == [expected]


def may_match(text, contains_null=None, contains_nan=None, lower=None, upper=None, kind="int"):
    struct_type = StructType(NestedField(1000, "p", parse_type(kind)))
    encoded = [None if bound is None else value_to_bytes(parse_type(kind), bound) for bound in (lower, upper)]
    decoded = PartitionSummaries.decode(struct_type, 1, [arrays([(contains_null, contains_nan, *encoded)])])
    return bool(manifests_may_match(bind(struct_type, parse(text)), decoded)[0])


@pytest.mark.parametrize("vector", VECTORS["field_summary_skip"], ids=lambda vector: str(vector))
@pytest.mark.spec("SCAN-18", "ML-13", "ML-15")
def test_summaries_skip_what_the_vectors_skip(vector):
    found = may_match(vector["predicate"], vector["contains_null"], None, vector.get("lower"), vector.get("upper"))
    assert found is vector["may_match"]


@pytest.mark.parametrize(
    ("text", "contains_null", "contains_nan", "lower", "upper", "expected"),
    [
        ("p is nan", False, False, 1.0, 2.0, False),
        ("p is nan", False, None, 1.0, 2.0, True),
        ("p is nan", False, True, None, None, True),
        ("p is not nan", False, True, None, None, False),
        ("p is not nan", True, True, None, None, True),
        ("p is not null", True, None, None, None, True),
        ("p is not null", True, False, None, None, False),
        ("p is not null", True, True, None, None, True),
        ("p > 5", False, False, 1.0, 2.0, False),
        ("p > 5", False, None, 1.0, 2.0, True),
        ("p > 5", True, False, None, None, False),
        ("p < 5", False, True, None, None, False),
        ("p = 5", False, True, 1.0, 2.0, False),
        ("p != 1", False, False, 1.0, 1.0, False),
        ("p != 1", False, True, 1.0, 1.0, True),
        ("p = 1", False, False, NAN, 2.0, True),
        ("p > 5", False, False, 1.0, NAN, True),
    ],
)
@pytest.mark.spec("ML-14", "ML-16", "SCAN-18", "SCAN-22", "MET-10")
def test_float_partitions_are_pruned_only_where_nan_does_not_matter(
    text, contains_null, contains_nan, lower, upper, expected
):
    assert may_match(text, contains_null, contains_nan, lower, upper, "double") is expected


EVERY = ["p is null", "p is not null", "p = 5", "p != 5", "p < 5", "p > 5", "p in (1, 2)", "p not in (1, 2)"]


@pytest.mark.parametrize("text", EVERY)
@pytest.mark.spec("SCAN-18", "ML-13")
def test_a_missing_summary_keeps_a_manifest(text):
    struct_type = StructType(NestedField(1000, "p", parse_type("int")))
    bound = bind(struct_type, parse(text))
    assert may_match(text)
    for summaries in (
        PartitionSummaries(2),
        PartitionSummaries(2, {1000: FieldSummaries()}),
        PartitionSummaries.decode(struct_type, 2, []),
        PartitionSummaries.decode(struct_type, 2, [(None, None, None, None)]),
    ):
        assert manifests_may_match(bound, summaries).tolist() == [True, True]


@pytest.mark.spec("SCAN-18", "SVS-19")
def test_a_bound_that_cannot_be_decoded_is_unknown_and_not_absent():
    struct_type = StructType(NestedField(1000, "p", parse_type("int")))
    damaged = (pa.array([True]), None, pa.array([b"\x01\x02\x03"]), pa.array([b"\x01\x02\x03"]))
    decoded = PartitionSummaries.decode(struct_type, 1, [damaged])
    for text in ("p is not null", "p = 5", "p > 5"):
        assert manifests_may_match(bind(struct_type, parse(text)), decoded).tolist() == [True]


@pytest.mark.spec("SCAN-18", "SVS-18", "ML-15")
def test_bounds_from_before_a_promotion_are_read():
    struct_type = StructType(NestedField(1000, "p", parse_type("long")))
    bounds = pa.array([struct.pack("<i", 5), struct.pack("<q", 2**40)])
    decoded = PartitionSummaries.decode(struct_type, 2, [(pa.array([False, False]), None, bounds, bounds)])
    assert manifests_may_match(bind(struct_type, parse("p > 100")), decoded).tolist() == [False, True]
    assert manifests_may_match(bind(struct_type, parse("p in (4, 5)")), decoded).tolist() == [True, False]


@pytest.mark.spec("SCAN-18")
def test_predicates_on_several_partition_fields_combine():
    struct_type = partition_type("int", "string")
    numbers = arrays([summary_of("int", [1, 2]), summary_of("int", [8, 9]), summary_of("int", [1, 9])])
    texts = arrays([summary_of("string", ["a"]), summary_of("string", ["a"]), summary_of("string", ["x"])])
    decoded = PartitionSummaries.decode(struct_type, 3, [numbers, texts])
    for text, expected in {
        "p0 = 2 and p1 = 'a'": [True, False, False],
        "p0 = 2 or p1 = 'x'": [True, False, True],
        "p0 > 5 and p1 like 'a%'": [False, True, False],
        "p0 in (1, 8) and p1 is not null": [True, True, True],
    }.items():
        assert manifests_may_match(bind(struct_type, parse(text)), decoded).tolist() == expected
    assert manifests_may_match(AlwaysTrue(), decoded).all()
    only = PartitionSummaries.decode(struct_type, 3, [numbers, texts], only=frozenset({1001}))
    assert set(only.fields) == {1001}


@pytest.mark.spec("ML-21", "SCAN-17")
def test_only_counts_known_to_be_zero_rule_a_manifest_out():
    added = pa.array([0, 0, None, 1, -1, None, 0], pa.int32())
    existing = pa.array([0, None, 0, 0, 0, None, 3], pa.int32())
    assert has_live_files(added, existing, 7).tolist() == [False, True, True, True, True, True, True]
    assert has_live_files(None, existing, 7).all()


def test_an_expression_must_be_bound():
    with pytest.raises(InvalidExpression, match="bind"):
        manifests_may_match(EqualTo("p", 5), PartitionSummaries(1))
