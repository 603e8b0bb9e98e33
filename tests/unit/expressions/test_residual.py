"""The residual of a filter inside a partition."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.expressions import AlwaysFalse, AlwaysTrue, GreaterThan, Residuals, bind, bound_leaves, parse
from icefield.partitioning import UNPARTITIONED
from icefield.partitioning.spec import partition_batch
from icefield.types.values import from_arrow_array
from naive_filters import COLUMNS, SCHEMA, TRANSFORM_CASES, column_name, expressions, naive, rows, spec_of, to_batch


@pytest.mark.slow
@pytest.mark.spec("SCAN-06")
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_within_its_partition_the_residual_keeps_the_rows_that_the_filter_keeps(data):
    choices = [(column_name(kind), text) for text, kind in TRANSFORM_CASES]
    spec = spec_of(*data.draw(st.lists(st.sampled_from(choices), max_size=3, unique=True)))
    names = {SCHEMA.find_column_name(field.source_id) for field in spec.fields} | {"c_int"}
    columns = {name: COLUMNS[name] for name in sorted(names)}
    bound = bind(SCHEMA, data.draw(expressions(columns)))
    found = data.draw(rows(columns))
    partitions = partition_batch(spec, SCHEMA, to_batch(found))
    residuals = Residuals(spec, SCHEMA, bound)
    groups, distinct = residuals.partition_groups(partitions)
    assert len(groups) == len(found)
    for row, values, group in zip(
        found, from_arrow_array(spec.partition_type(SCHEMA), partitions), groups, strict=True
    ):
        residual = residuals.of(values)
        assert residual == distinct[group]
        assert (naive(residual, row) is True) == (naive(bound, row) is True)


@pytest.mark.spec("SCAN-06")
def test_an_identity_partition_leaves_nothing_of_its_predicates():
    bound = bind(SCHEMA, parse("c_string = 'a' and c_int > 5"))
    residuals = Residuals(spec_of(("c_string", "identity")), SCHEMA, bound)
    assert str(residuals.of(("a",))) == "c_int > 5"
    assert residuals.of(("b",)) == AlwaysFalse()
    assert residuals.of((None,)) == AlwaysFalse()
    only = Residuals(spec_of(("c_string", "identity")), SCHEMA, bind(SCHEMA, parse("c_string in ('a', 'b')")))
    assert only.of(("a",)) == AlwaysTrue()


@pytest.mark.spec("SCAN-06")
def test_a_day_inside_a_range_leaves_nothing_and_those_at_its_ends_leave_their_end():
    text = "c_timestamp >= '2017-12-01T10:00:00' and c_timestamp < '2017-12-03T00:00:00'"
    bound = bind(SCHEMA, parse(text))
    residuals = Residuals(spec_of(("c_timestamp", "day")), SCHEMA, bound)
    first = 17501
    lower, upper = bound.children
    assert [residuals.of((first + day,)) for day in (-1, 0, 1, 2)] == [
        AlwaysFalse(),
        lower,
        AlwaysTrue(),
        AlwaysFalse(),
    ]
    assert upper not in (residuals.of((first,)), residuals.of((first + 1,)))


def test_partitions_that_decide_alike_share_one_residual():
    spec = spec_of(("c_int", "identity"))
    residuals = Residuals(spec, SCHEMA, bind(SCHEMA, parse("c_int > 5 and c_string = 'a'")))
    partitions = pa.StructArray.from_arrays([pa.array(np.arange(10_000) % 11, pa.int32())], names=["p0"])
    groups, distinct = residuals.partition_groups(partitions)
    assert sorted(map(str, distinct)) == ["c_string = 'a'", "false"]
    assert residuals.of((6,)) is residuals.of((7,))
    assert [str(distinct[group]) for group in groups[:7]] == ["false"] * 6 + ["c_string = 'a'"]


def test_many_predicates_are_stated_apart():
    spec = spec_of(("c_int", "identity"))
    text = " and ".join(f"(c_int = {value} or c_string = '{value}')" for value in range(60))
    residuals = Residuals(spec, SCHEMA, bind(SCHEMA, parse(text)))
    partitions = pa.StructArray.from_arrays([pa.array(range(70), pa.int32())], names=["p0"])
    groups, distinct = residuals.partition_groups(partitions)
    assert len(distinct) == 61
    for value, group in enumerate(groups):
        assert len(bound_leaves(distinct[group])) == (59 if value < 60 else 60)
        assert f"'{value}'" not in str(distinct[group])


def test_a_filter_that_the_spec_says_nothing_of_is_its_own_residual():
    bound = bind(SCHEMA, GreaterThan("c_int", 5))
    for spec in (UNPARTITIONED, spec_of(("c_string", "identity")), spec_of(("c_int", "zorder"))):
        residuals = Residuals(spec, SCHEMA, bound)
        assert residuals.is_constant
        assert residuals.of((None,) * len(spec)) is bound
        partitions = pa.StructArray.from_arrays([pa.nulls(2)], names=["p0"])
        assert residuals.partition_groups(partitions)[1] == [bound]
    unknown = Residuals(spec_of(("c_int", "identity"), ("c_long", "zorder")), SCHEMA, bound)
    assert unknown.of((6, b"of a type that nobody knows")) == AlwaysTrue()
