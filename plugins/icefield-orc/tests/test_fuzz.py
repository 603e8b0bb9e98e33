"""Damaged and hostile stripes: what is looked at before Arrow sees them, and files damaged by the hundred."""

import datetime as dt
import itertools
import random
from hashlib import sha256

import pyarrow as pa
import pyarrow.orc as po
import pytest
from fuzzing import fuzz
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.errors import IcefieldError, InvalidFile
from icefield.schema import Schema
from icefield.toolkit import BytesInput
from icefield.types import NestedField, TimestampNanoType, TimestamptzNanoType
from icefield_orc.compression import NONE, unpack
from icefield_orc.run_lengths import sum_of_lengths
from icefield_orc.stripes import LENGTH, read_footers
from icefield_orc.tail import read_tail
from icefield_testing import sample_tables
from orc_files import peer_write, read, write, write_rows
from outcomes import counted_outcomes

CODECS = ("none", "zlib", "zstd", "snappy", "lz4")
SMALL = {"write.orc.stripe-size-bytes": "20000", "write.orc.vectorized.batch-size": "100"}


outcomes = counted_outcomes()


def whole_files():
    """Files of every type, shape and codec."""
    tables = sample_tables(1_500, unsupported=(TimestampNanoType, TimestamptzNanoType))
    schema, table = tables["flat"]
    files = {f"flat, {codec}": write(schema, table, batch_rows=300, properties={**SMALL, **compressed(codec)})[0]
             for codec in CODECS}  # fmt: skip
    for name, codec in (("nested", "none"), ("nested", "zlib"), ("types", "none"), ("types", "zstd")):
        files[f"{name}, {codec}"] = write(*tables[name], properties=compressed(codec))[0]
    text = "struct<a:bigint,s:string,l:array<string>,m:map<string,struct<x:double,t:timestamp>>>"
    timestamp = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    rows = [(n, sha256(bytes(n)).hexdigest(), [str(n)] * (n % 4), {str(n): (n / 2, timestamp)}) for n in range(200)]
    files["a peer's"] = peer_write(text, rows)
    return files


def compressed(codec):
    return {"write.orc.compression-codec": codec}


@pytest.mark.counted
@pytest.mark.slow
def test_damaged_files_give_rows_or_one_typed_error_and_never_end_the_process():
    outcome = fuzz("icefield_orc.orc_format:OrcFormat", whole_files())
    assert outcome.counts["rows"] > 50
    assert outcome.counts["InvalidFile"] > 100
    assert outcome.counts.keys() <= {"rows", "InvalidFile", "UnsupportedFeature"}
    assert outcome.memory < 2 << 30


class TestLengths:
    def streams(self, data):
        """The bytes of each stream of lengths in a file, and whether they are of the second encoding."""
        tail = read_tail(BytesInput(data), len(data))
        for stripe, footer in zip(tail.stripes, read_footers(BytesInput(data), tail), strict=True):
            position = stripe.start
            for stream in footer.streams:
                if stream.kind == LENGTH:
                    packed = data[position : position + stream.length]
                    plain = unpack(packed, tail.postscript.codec, tail.postscript.block_size, 1 << 30)
                    yield plain, footer.encodings[stream.column] in (2, 3)
                position += stream.length

    @settings(max_examples=150, deadline=None)
    @given(
        lengths=st.lists(
            st.integers(0, 8) | st.integers(0, 3_000)
            | st.sampled_from([0, 1, 5, 5, 5, 5, 100_000]), min_size=1, max_size=40,
        ).flatmap(lambda some: st.integers(1, 30).map(lambda times: some * times)),
        version=st.sampled_from(["0.11", "0.12"]),
    )  # fmt: skip
    @pytest.mark.slow
    def test_lengths_that_a_library_wrote_add_up(self, lengths, version):
        offsets = pa.array(itertools.accumulate(lengths, initial=0), pa.int32())
        table = pa.table({"l": pa.ListArray.from_arrays(offsets, pa.nulls(sum(lengths), pa.int8()))})
        out = pa.BufferOutputStream()
        po.write_table(table, out, file_version=version, compression="uncompressed")
        (found,) = self.streams(bytes(out.getvalue()))
        assert sum_of_lengths(*found, exact=True) == (len(lengths), sum(lengths))
        count, bound = sum_of_lengths(*found)
        assert count == len(lengths)
        assert bound >= sum(lengths)

    def test_each_kind_of_run_is_met(self):
        rng = random.Random(3)
        for lengths in (
            [7] * 9,  # repeated
            list(range(500)),  # steps of one size
            [number * number // 50 for number in range(512)],  # steps of several sizes
            [rng.randrange(100) for _ in range(511)] + [60_000],  # with one that stands out
            [rng.randrange(1 << 13) for _ in range(300)],
        ):
            table = pa.table({"s": ["x" * length for length in lengths]})
            out = pa.BufferOutputStream()
            po.write_table(table, out, compression="uncompressed")
            (found,) = self.streams(bytes(out.getvalue()))
            assert sum_of_lengths(*found, exact=True) == (len(lengths), sum(lengths))

    @given(data=st.binary(max_size=60), second=st.booleans(), exact=st.booleans())
    @example(data=b"\x00\x00\x04", second=False, exact=True)
    @example(data=b"\x00", second=False, exact=True)
    def test_any_bytes_are_lengths_or_refused(self, outcomes, data, second, exact):
        with outcomes.of("lengths", ValueError):
            count, total = sum_of_lengths(data, second, exact=exact)
            assert count >= 0
            assert total >= 0

    @pytest.mark.parametrize("codec", CODECS)
    @pytest.mark.parametrize("kind", ["strings", "lists", "dictionary"])
    def test_claims_of_more_than_there_is_are_refused(self, codec, kind):
        """The lengths are one run each; it is replaced by one of the same length that claims exabytes."""
        held = {"strings": ["abc", "def", "ghi", "jkl"], "lists": [[1, 2, 3]] * 4, "dictionary": ["abc", "def"] * 1_000}
        out = pa.BufferOutputStream()
        # Small streams stay as they are under every codec.
        name = {"none": "uncompressed"}.get(codec, codec)
        po.write_table(pa.table({"c": held[kind]}), out, compression=name, dictionary_key_size_threshold=0.9)
        data = bytes(out.getvalue())
        tail = read_tail(BytesInput(data), len(data))
        ((stripe, footer),) = zip(tail.stripes, read_footers(BytesInput(data), tail), strict=True)
        position = stripe.start
        for stream in footer.streams:
            if stream.kind == LENGTH:
                break
            position += stream.length
        head = 0 if tail.postscript.codec == NONE else 3
        count = stream.length - head
        for claim in (bytes([1 << 3 | 1]) + b"\x7f" * 2, b"\x38" + b"\x7f" * 8):
            if len(claim) <= count:
                hostile = data[: position + head] + claim + data[position + head + len(claim) :]
                with pytest.raises(IcefieldError):
                    read(hostile)
        assert count >= 2

    def test_a_string_that_claims_an_exabyte_is_refused_before_it_reaches_the_library(self):
        rows = [{"s": "x" * length} for length in (1, 300, 2, 7, 40, 9, 5_000)]
        data, _ = write_rows(Schema(NestedField(1, "s", "string")), rows, properties=compressed("none"))
        tail = read_tail(BytesInput(data), len(data))
        (footer,) = read_footers(BytesInput(data), tail)
        position = tail.stripes[0].start
        for stream in footer.streams:
            if stream.kind == LENGTH:
                break
            position += stream.length
        run = b"\x38" + b"\x40" + b"\0" * 7  # three times 2**62
        hostile = data[:position] + run + data[position + len(run) :]
        with pytest.raises(InvalidFile, match=r"add up to more than there is|cut off|below zero"):
            read(hostile)


def test_a_null_among_the_keys_of_a_map_is_refused_before_it_ends_the_process():
    rows = [({"a": 1, "b": None},), ({"c": 3, None: 4, "d": 5},)]
    with pytest.raises(InvalidFile, match="a null among the keys"):
        read(peer_write("struct<m:map<string,int>>", rows))
