"""Checks of features that a format needs only for manifests."""

from __future__ import annotations

import pyarrow as pa
import pytest
from icefield import MemoryFileSystem
from icefield.abc import FormatAbility, ManifestFormat, ManifestFormatReader, ManifestReadRequest, ReadRequest
from icefield.toolkit import BytesInput
from icefield.types import BinaryType, IcebergType, IntegerType, LongType, MapType, StringType

from icefield_testing.format_data import NESTED, flat_table, table_of
from icefield_testing.formats.base import FormatChecks
from icefield_testing.formats.explain import check_positions


class ManifestChecks(FormatChecks):
    """Checks of files that are read together, of wanted map keys, of prepared readers, and of appended blocks."""

    def test_files_read_together_are_read_as_one_by_one(self, file_format: ManifestFormat) -> None:
        """If this fails, ``read_together`` mixes the rows of files, or loses those of an empty one."""
        schema, _ = flat_table(0)
        made = [flat_table(rows)[1].slice(offset) for rows, offset in ((50, 0), (0, 0), (300, 120), (7, 6))]
        locations = [self.write(file_format, schema, table)[0] for table in made]
        readers = [self.open_manifest(file_format, location) for location in locations]
        try:
            request = ManifestReadRequest(readers[0].schema, batch_rows=100)
            together = file_format.read_together(readers, request)
            assert len(together) == len(made)
            for batches, table in zip(together, made, strict=True):
                self.check_equal(pa.Table.from_batches(batches, request.columns), table)
        finally:
            for reader in readers:
                reader.close()

    def test_map_keys_that_are_wanted_come(self, file_format: ManifestFormat) -> None:
        """If this fails, ``ManifestReadRequest.map_keys`` drops an entry that was asked for."""
        schema, table = table_of(NESTED["map of ints"], [[(k, f"v{k}") for k in range(9)]] * 50, required=True)
        location, _ = self.write(file_format, schema, table)
        with self.open_manifest(file_format, location) as reader:
            request = ManifestReadRequest(reader.schema, map_keys={2: frozenset({3, 5, 77})})
            for batch in reader.read(request):
                for row in batch.column(1).to_pylist():
                    assert {key: value for key, value in row if key in (3, 5, 77)} == {3: "v3", 5: "v5"}

    @pytest.mark.parametrize("kind", [LongType(), BinaryType()])
    def test_maps_that_are_read_encoded_are_written_as_they_are(
        self, file_format: ManifestFormat, kind: IcebergType
    ) -> None:
        """If this fails, a map that is read as ``pa.binary()`` comes back as another map after it is written."""
        if FormatAbility.ENCODED_MAPS not in file_format.abilities:
            pytest.skip("the format declares no ENCODED_MAPS")
        maps = [[(k, n + k if kind == LongType() else b"%d" % n * k) for k in range(n % 4)] for n in range(500)]
        map_type = MapType(3, IntegerType(), 4, kind, value_required=True)
        schema, table = table_of(map_type, [None if n % 7 == 1 else one for n, one in enumerate(maps)], required=False)
        location, _ = self.write(file_format, schema, table)
        with self.open_manifest(file_format, location) as reader:
            wanted = [reader.schema.field("n"), reader.schema.field("v").with_type(pa.binary())]
            encoded = pa.Table.from_batches(reader.read(ManifestReadRequest(pa.schema(wanted))))
        again, _ = self.write(file_format, schema, encoded, batch_rows=200)
        self.check_equal(self.read_all(file_format, again, schema), table)

    def test_positions_begin_at_0_in_each_of_files_read_together(self, file_format: ManifestFormat) -> None:
        """If this fails, ``read_together`` counts positions through all files: each file has its own."""
        schema, _ = flat_table(0)
        locations = [self.write(file_format, schema, flat_table(rows)[1])[0] for rows in (50, 0, 300)]
        readers = [self.open_manifest(file_format, location) for location in locations]
        try:
            wanted = pa.schema([readers[0].schema.field("n")])
            together = file_format.read_together(readers, ManifestReadRequest(wanted, positions=True, batch_rows=100))
            check_positions([self.as_reading(batches) for batches in together])
        finally:
            for reader in readers:
                reader.close()

    def test_appended_blocks_come_after_the_old_ones(self, file_format: ManifestFormat) -> None:
        """If this fails, ``append_blocks`` loses records, adds them twice, or keeps the old metadata."""
        schema, table = flat_table(500)
        more = flat_table(600)[1].slice(500).combine_chunks().to_batches()[0]
        location, _ = self.write(file_format, schema, table, batch_rows=100, metadata={"a": "old", "b": "old"})
        old = MemoryFileSystem().open_input(location).read()
        new = file_format.append_blocks(old, schema, more, {"a": "new"})
        if new is None:
            pytest.skip("the format has every file written anew")
        with file_format.open_reader(BytesInput(new), "memory://appended", size=len(new)) as reader:
            assert reader.metadata["a"] == b"new"
            got = pa.Table.from_batches(reader.read(ReadRequest(reader.schema)), reader.schema)
        self.check_equal(got, pa.concat_tables([table, pa.Table.from_batches([more])]))

    def test_blocks_are_not_appended_to_a_file_of_another_schema(self, file_format: ManifestFormat) -> None:
        """If this fails, records are appended that the file's own schema does not describe."""
        other_schema, other = table_of(StringType(), ["x"], required=True)
        location, _ = self.write(file_format, other_schema, other)
        schema, table = flat_table(3)
        old = MemoryFileSystem().open_input(location).read()
        assert file_format.append_blocks(old, schema, table.to_batches()[0], {}) is None

    def test_what_was_prepared_is_read_as_it_is(self, file_format: ManifestFormat) -> None:
        """If this fails, ``prepare`` takes rows away from ``read``, or gives them twice."""
        schema, table = flat_table(3_000)
        location, _ = self.write(file_format, schema, table, batch_rows=500)
        for limit in (1, 1 << 30):
            with self.open_manifest(file_format, location) as reader:
                reader.prepare(limit)
                self.check_equal(pa.Table.from_batches(reader.read(ReadRequest(reader.schema)), reader.schema), table)

    def open_manifest(self, file_format: ManifestFormat, location: str) -> ManifestFormatReader:
        """A reader of a file in memory."""
        return file_format.open_reader(MemoryFileSystem().open_input(location), location)
