"""Files damaged by the hundred, read in a process of their own."""

import pytest
from avro_files import write_file
from fuzzing import fuzz
from icefield_testing import sample_tables

CODECS = ("uncompressed", "gzip", "snappy", "zstd", "bzip2", "xz")


def whole_files():
    """Files of every type, shape and codec, with several blocks each."""
    tables = sample_tables()
    files = {f"flat, {codec}": file(*tables["flat"], codec) for codec in CODECS}
    for codec in ("uncompressed", "zstd"):
        files |= {f"{name}, {codec}": file(*tables[name], codec) for name in ("nested", "types")}
    return files


def file(schema, table, codec):
    properties = {"write.avro.compression-codec": codec, "avro.block-size": "3000"}
    return write_file(schema, table.to_batches(), properties)


@pytest.mark.counted
@pytest.mark.slow
def test_damaged_files_give_rows_or_one_typed_error_and_never_end_the_process():
    outcome = fuzz("icefield_avro.avro_format:AvroFormat", whole_files())
    assert outcome.counts["rows"] > 20
    assert outcome.counts["InvalidFile"] > 200
    assert outcome.counts.keys() <= {"rows", "InvalidFile", "UnsupportedFeature"}
    assert outcome.memory < 2 << 30
