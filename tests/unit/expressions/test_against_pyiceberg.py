"""The same filters in PyIceberg, without nulls under a negation and NaN in a comparison, where the meanings differ."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.expressions import bind, inclusive_metrics, inclusive_projection, strict_metrics, strict_projection
from icefield.partitioning.transforms import parse_transform
from icefield.types import parse_type
from icefield.types.values import value_to_bytes
from naive_filters import SCHEMA, expressions, naive, spec_of
from naive_statistics import File, Statistics, column_statistics

pytest.importorskip("pyiceberg")

from pyiceberg.conversions import to_bytes as peer_bytes
from pyiceberg.expressions import visitors
from pyiceberg.expressions.parser import parse as parse_peer
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField as PeerField
from pyiceberg.partitioning import PartitionSpec as PeerSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.transforms import parse_transform as parse_peer_transform
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, IntegerType, LongType, NestedField, StringType

COLUMNS = {"c_int": "int", "c_long": "long", "c_string": "string", "c_decimal_9_2_": "decimal(9,2)"}
PEER_TYPES = {"int": IntegerType(), "long": LongType(), "string": StringType(), "decimal(9,2)": DecimalType(9, 2)}
PEER_SCHEMA = PeerSchema(
    *(
        NestedField(SCHEMA.find_field(name).field_id, name, PEER_TYPES[kind], required=False)
        for name, kind in COLUMNS.items()
    )
)
FULL_VALUES = {
    "c_int": st.integers(-12, 12),
    "c_long": st.integers(-12, 12),
    "c_string": st.sampled_from(["a", "ab", "abc", "abd", "b", "é"]),
    "c_decimal_9_2_": st.decimals(-3, 3, places=2),
}


def simple(columns):
    """Expressions that both read alike."""
    return expressions(columns).filter(
        lambda e: not any(bad in str(e) for bad in ("nan", "like", "\\", "in ()", '"', "true", "false"))
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_files_without_nulls_are_kept_and_claimed_alike(data):
    expression = data.draw(simple(COLUMNS))
    found = data.draw(st.lists(st.fixed_dictionaries(FULL_VALUES), min_size=1, max_size=4))
    peer = parse_peer(str(expression))
    keep = visitors._InclusiveMetricsEvaluator(PEER_SCHEMA, peer).eval
    cover = visitors._StrictMetricsEvaluator(PEER_SCHEMA, peer).eval
    columns = {SCHEMA.find_field(name).field_id: column_statistics(name, found) for name in COLUMNS}
    bound = bind(SCHEMA, expression)
    statistics = Statistics([File(found, len(found), columns)])
    kept, covered = inclusive_metrics(bound, statistics)[0], strict_metrics(bound, statistics)[0]
    file = _peer_file(found, columns)
    # Icefield may prune more: it prunes != where all values are equal.
    assert keep(file) or not kept
    assert covered or not cover(file)
    if "!=" not in str(bound) and "not in" not in str(bound):
        assert keep(file) == bool(kept)


def _peer_file(found, columns):
    def encoded(part):
        return {
            id_: peer_bytes(PEER_SCHEMA.find_type(id_), getattr(one, part))
            for id_, one in columns.items()
            if getattr(one, part) is not None
        }

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="file",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(found),
        file_size_in_bytes=1,
        value_counts={id_: one.values for id_, one in columns.items()},
        null_value_counts={id_: one.nulls for id_, one in columns.items()},
        nan_value_counts={},
        lower_bounds=encoded("lower"),
        upper_bounds=encoded("upper"),
    )


def test_bounds_are_encoded_alike():
    for name, kind in COLUMNS.items():
        value = {"c_string": "é"}.get(name, 5)
        if kind.startswith("decimal"):
            continue
        assert peer_bytes(PEER_TYPES[kind], value) == value_to_bytes(parse_type(kind), value)


@pytest.mark.parametrize(
    ("name", "transform"),
    [
        ("c_int", "bucket[4]"),
        ("c_string", "bucket[4]"),
        ("c_int", "truncate[10]"),
        ("c_string", "truncate[2]"),
        ("c_long", "identity"),
    ],
)
@pytest.mark.spec("SCAN-04", "SCAN-05")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_projections_admit_no_more_and_claim_no_less_than_pyiceberg(name, transform, data):
    expression = data.draw(simple({name: COLUMNS[name]}))
    spec = spec_of((name, transform))
    field_id = SCHEMA.find_field(name).field_id
    peer_spec = PeerSpec(PeerField(field_id, 1000, parse_peer_transform(transform), "p0"), spec_id=1)
    peer_inclusive = visitors.inclusive_projection(PEER_SCHEMA, peer_spec)(parse_peer(str(expression)))
    struct_type = peer_spec.partition_type(PEER_SCHEMA)
    admits = visitors.expression_evaluator(PeerSchema(*struct_type.fields), peer_inclusive, True)
    bound = bind(SCHEMA, expression)
    inclusive, strict = inclusive_projection(spec, SCHEMA, bound), strict_projection(spec, SCHEMA, bound)
    value = data.draw(FULL_VALUES[name])
    partition = parse_transform(transform).apply_value(value, parse_type(COLUMNS[name]))
    if naive(bound, {name: value}):
        assert naive(inclusive, {"p0": partition}) is True
        assert admits(Record(partition))
    elif naive(inclusive, {"p0": partition}) is True:
        assert admits(Record(partition))
    if naive(strict, {"p0": partition}) is True:
        assert naive(bound, {name: value}) is True
