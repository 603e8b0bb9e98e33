"""Values that an annotation does not allow never get into a file: one place refuses them, whatever the writer."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.expressions import bind, parse
from icefield.schema import Schema
from icefield.types import ListType, NestedField, parse_type
from parquet_files import read_as, write
from tables import new_table
from vectors import VECTORS


def one(kind):
    return Schema(NestedField(1, "v", parse_type(kind) if isinstance(kind, str) else kind))


def texts(items):
    """An array of strings whose bytes are anything."""
    return pa.array(items, pa.binary()).view(pa.string())


def decimals(items, precision):
    """An array of decimals whose digits are anything."""
    return pa.array([None if each is None else Decimal(each) for each in items], pa.decimal128(38, 0)).view(
        pa.decimal128(precision, 0)
    )


def is_text(value):
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def near(*edges):
    return st.sampled_from(edges).flatmap(lambda edge: st.integers(edge - 2, edge + 2))


# By the table's type: raw values, the array they come in, which of them the type holds, and how they read back.
KINDS = {
    "int": (near(0, 2**31, -(2**31), 2**40), lambda raw: pa.array(raw, pa.int64()),
            lambda v: -(2**31) <= v < 2**31, lambda v: v),
    "long": (near(2, 2**63, 2**64 - 3), lambda raw: pa.array(raw, pa.uint64()), lambda v: v < 2**63, lambda v: v),
    "decimal(4,0)": (near(0, 10**4, -(10**4), 10**12), lambda raw: decimals(raw, 4),
                     lambda v: abs(v) < 10**4, Decimal),
    "decimal(18,0)": (near(10**18, -(10**18), 10**30), lambda raw: decimals(raw, 18),
                      lambda v: abs(v) < 10**18, Decimal),
    "time": (near(0, 86_400_000_000, 90_000_000_000), lambda raw: pa.array(raw, pa.int64()).view(pa.time64("us")),
             lambda v: 0 <= v < 86_400_000_000,
             lambda v: (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=v)).time()),
    "string": (st.sampled_from([b"", b"a", "å".encode(), b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xe2\x82"]),
               texts, is_text, lambda v: v.decode()),
    "fixed[3]": (st.binary(min_size=2, max_size=4), lambda raw: pa.array(raw, pa.binary()),
                 lambda v: len(v) == 3, lambda v: v),
    "uuid": (st.binary(min_size=15, max_size=17), lambda raw: pa.array(raw, pa.binary()),
             lambda v: len(v) == 16, lambda v: v),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.spec("PLT-68", "PLT-10")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(sorted(KINDS)), nested=st.booleans(), data=st.data())
def test_what_a_type_does_not_hold_is_refused_and_all_else_is_written(kind, nested, data):
    values, make, fits, shown = KINDS[kind]
    raw = data.draw(st.lists(st.none() | values, min_size=1, max_size=4))
    array = make(raw)
    expected = [None if each is None else shown(each) if fits(each) else each for each in raw]
    if nested:
        array = pa.ListArray.from_arrays([0, len(array)], array)
        expected = [expected]
    table = new_table(schema=one(ListType(2, parse_type(kind)) if nested else kind))
    rows = pa.table({"v": array})
    if all(each is None or fits(each) for each in raw):
        table.append(rows)
        assert table.scan().to_arrow()["v"].to_pylist() == expected
    else:
        with pytest.raises(InvalidArgument, match="'v'"):
            table.append(rows)
        assert table.current_snapshot() is None


@pytest.mark.spec("PLT-10")
def test_what_is_written_of_small_integers_reads_alike_everywhere():
    """The widths of what comes in are not promised in the file, so that 200 fits next to an int8."""
    table = new_table(schema=one("int"))
    table.append(pa.table({"v": pa.array([-128, 127], pa.int8())}))
    table.append(pa.table({"v": pa.array([200], pa.uint8())}))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [-128, 127, 200]


@pytest.mark.spec("PLT-38")
@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date"])
@pytest.mark.parametrize(
    "text",
    ["2023-02-29T00:00:00", "2024-13-01T00:00:00", "2024-04-31T00:00:00", "2024-01-00T00:00:00",
     "2024-01-01T25:00:00", "2024-01-01T-1:00:00", "2024-01-01T00:61:00", "2024-01-01T00:00:61"],
)  # fmt: skip
def test_a_moment_that_no_calendar_has_is_refused(kind, text):
    if kind == "date":
        if "T00:00:00" not in text:
            return
        text = text.partition("T")[0]
    zone = "+00:00" if kind == "timestamptz" else ""
    with pytest.raises(InvalidArgument):
        bind(one(kind), parse(f"v = '{text}{zone}'"))


@pytest.mark.spec("PLT-38")
@pytest.mark.parametrize("text", ["24:00:00", "25:00:00", "-1:00:00", "00:60:00", "00:00:60"])
def test_a_time_that_no_clock_shows_is_refused(text):
    with pytest.raises(InvalidArgument):
        bind(one("time"), parse(f"v = '{text}'"))


class TestNanoseconds:
    LEAST, MOST = -(2**63), 2**63 - 1

    @pytest.mark.spec("PLT-41")
    @pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
    def test_the_bounds_are_written_and_read(self, kind):
        span = VECTORS["parquet_nanos_range"]
        schema = one(kind)
        zone = "UTC" if kind == "timestamptz_ns" else None
        array = pa.array([self.LEAST, self.MOST], pa.int64()).view(pa.timestamp("ns", zone))
        seconds = array.cast(pa.timestamp("s", zone), safe=False).cast(pa.int64()).to_pylist()
        shown = [dt.datetime(1970, 1, 1) + dt.timedelta(seconds=each) for each in seconds]
        assert [each.isoformat()[:16] for each in shown] == [span["min"][:16], span["max"][:16]]
        data, _ = write(schema, pa.table({"v": array}).cast(pa.schema([pa.field("v", array.type)])))
        assert read_as(schema, data)["v"].cast(pa.int64()).to_pylist() == [self.LEAST, self.MOST]
        assert pq.read_table(pa.BufferReader(data))["v"].cast(pa.int64()).to_pylist() == [self.LEAST, self.MOST]

    @pytest.mark.spec("PLT-41")
    @pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns"])
    @pytest.mark.parametrize("micros", [LEAST // 1000, MOST // 1000 + 1, -(2**62), 2**62])
    def test_a_microsecond_beyond_them_is_refused(self, kind, micros):
        zone = "UTC" if kind == "timestamptz_ns" else None
        table = new_table(schema=one(kind), properties={"format-version": "3"})
        rows = pa.table({"v": pa.array([micros], pa.int64()).view(pa.timestamp("us", zone))})
        with pytest.raises(InvalidArgument, match="'v'"):
            table.append(rows)
