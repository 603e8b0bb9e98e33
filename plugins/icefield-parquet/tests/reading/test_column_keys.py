"""Columns with keys of their own are refused: pyarrow would end the process."""

from __future__ import annotations

import base64

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from icefield import Plugins
from icefield.abc import FileKey, ReadRequest
from icefield.errors import UnsupportedFeature
from icefield.toolkit import BytesInput

ID, TEXT = ({"PARQUET:field_id": str(number)} for number in (1, 2))
SCHEMA = pa.schema([pa.field("id", pa.int64(), metadata=ID), pa.field("text", pa.string(), metadata=TEXT)])
ROWS = pa.table({"id": range(100), "text": [f"confidential-{each}" for each in range(100)]}, schema=SCHEMA)


def written(row_groups, **columns):
    """A file that pyarrow encrypts by a key service, and the key of its footer."""
    keys = {}

    class Kms(pe.KmsClient):
        def __init__(self, configuration):
            super().__init__()

        def wrap_key(self, key, master):
            keys[master] = bytes(key)
            return base64.b64encode(key)

        def unwrap_key(self, wrapped, master):
            return base64.b64decode(wrapped)

    settings = {"column_keys": {key: [name] for key, name in columns.items()}} if columns else {}
    configuration = pe.EncryptionConfiguration(
        "footer", double_wrapping=False, uniform_encryption=not columns, **settings
    )
    properties = pe.CryptoFactory(Kms).file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, SCHEMA, encryption_properties=properties) as writer:
        writer.write_table(ROWS, row_group_size=-(-100 // row_groups))
    return sink.getvalue().to_pybytes(), FileKey(keys["footer"], b"")


def read(data, key):
    source = BytesInput(data)
    source.key = key
    with Plugins.installed().file_format("parquet").open_reader(source, "memory://f", size=len(data)) as reader:
        return pa.Table.from_batches(reader.read(ReadRequest(SCHEMA)))


@pytest.mark.parametrize("row_groups", [1, 2, 7])
@pytest.mark.parametrize("columns", [{"a": "text"}, {"a": "id"}, {"a": "id", "b": "text"}])
def test_a_file_with_column_keys_is_refused_in_one_sentence(row_groups, columns):
    data, key = written(row_groups, **columns)
    with pytest.raises(UnsupportedFeature, match="memory://f has columns with keys of their own, which pyarrow cannot"):
        read(data, key)


@pytest.mark.parametrize("row_groups", [1, 2, 7])
def test_a_file_of_another_writer_with_one_key_is_read(row_groups):
    assert read(*written(row_groups)).column("text").to_pylist() == ROWS.column("text").to_pylist()
