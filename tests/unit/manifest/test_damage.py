"""Damaged manifests: a typed error that names the location, and never anything else."""

import time
from dataclasses import replace

import numpy as np
import pytest
from bounded import bounded
from foreign_manifests import put, read
from icefield.errors import InvalidMetadata, UnsupportedFeature
from icefield.manifest import ALL_COLUMNS, ManifestWriter, write_manifest_list
from icefield.manifest.decoded import ManifestRequest
from icefield.manifest.manifest_list import ManifestList
from icefield.manifest.reader import ManifestReader
from icefield_avro.container import parse_header
from planned_tables import PlannedTable, spec


@pytest.mark.spec("MAN-01")
def test_a_manifest_that_was_cut_at_a_block_is_refused_when_length_and_counts_agree_that_rows_are_missing() -> None:
    made = PlannedTable()
    properties = {"avro.block-size": "1"}
    location = made.path("metadata/whole.avro")
    with ManifestWriter(made.io, location, made.specs[0], made.schema, 2, 1000, properties=properties) as writer:
        writer.add(made.file() for _ in range(10))
    data = made.io.read(location)
    sync = data[-16:]
    cut = data[: data.rfind(sync, 0, -16) + 16]
    assert len(cut) < len(data)
    short = put(made, cut, manifest_length=len(data), added_files_count=10)
    with pytest.raises(InvalidMetadata, match="cut short"):
        read(made, short)
    # If the manifest list is wrong in only one of them, damage is not proven.
    assert len(read(made, replace(short, added_files_count=9))) == 9
    assert len(read(made, replace(short, manifest_length=len(cut)))) == 9


@pytest.mark.spec("ENC-05")
def test_an_encrypted_manifest_or_list_is_refused_as_such() -> None:
    made = PlannedTable()
    manifest = put(made, b"AGS1" + bytes(100))
    with pytest.raises(UnsupportedFeature, match="encrypted") as caught:
        read(made, manifest)
    assert caught.value.data["location"] == manifest.manifest_path
    made.add_snapshot(manifest.manifest_path)
    with pytest.raises(UnsupportedFeature, match="encrypted"):
        made.planned()


def test_no_damage_leads_to_anything_but_a_typed_error_that_names_the_manifest() -> None:
    made = PlannedTable(specs=[spec((2, "identity", "name"))])
    files = [made.file(partition=(str(i),), bounds={"id": (i, i)}) for i in range(8)]
    good = made.io.read(made.write(files).manifest_path)
    rng = np.random.default_rng(7)
    refused = []
    for round_ in range(300):
        data = bytearray(good)
        match round_ % 3:
            case 0:
                data[rng.integers(len(data))] = rng.integers(256)
            case 1:
                del data[rng.integers(len(data)) :]
            case _:
                at = rng.integers(len(data))
                data[at : at + 4] = bytes(rng.integers(0, 256, 4, dtype=np.uint8))
        manifest = put(made, bytes(data), manifest_length=len(good), added_files_count=8)
        try:
            entries = read(made, manifest, columns=ALL_COLUMNS)
            list(entries.data_files())
        except (InvalidMetadata, UnsupportedFeature) as error:
            refused.append((manifest.manifest_path, str(error)))
    assert 150 < len(refused) < 300
    assert all(location in message for location, message in refused)


def bomb(made: PlannedTable, rows: int = 2_000, times: int = 24) -> bytes:
    """A manifest whose blocks each keep to the limit, and together contain three quarters of a gigabyte."""
    location = made.path("metadata/bomb.avro")
    path = made.path("data/") + "a" * 16_000
    with ManifestWriter(made.io, location, made.specs[0], made.schema, 2, 1000) as writer:
        file = made.file()
        writer.add(replace(file, file_path=f"{path}{number}") for number in range(rows))
    data = made.io.read(location)
    header = parse_header(data).size
    return data + data[header:] * (times - 1)


@pytest.mark.slow
def test_a_manifest_whose_blocks_together_inflate_to_gigabytes_is_given_up() -> None:
    made = PlannedTable()
    data = bomb(made)
    assert len(data) < 4 << 20
    manifests = [put(made, data, manifest_length=len(data), added_files_count=48_000) for _ in range(3)]
    with bounded(seconds=30, megabytes=1_500):
        with pytest.raises(InvalidMetadata, match=r"hold more than [\d,]+, which is refused") as raised:
            read(made, manifests[0], columns=ALL_COLUMNS)
        assert raised.value.data["location"] == manifests[0].manifest_path
        reader = ManifestReader(made.io)
        partition = made.specs[0].partition_type(made.schema)
        together = [(manifest, partition) for manifest in manifests]
        with pytest.raises(InvalidMetadata, match=r"hold more than [\d,]+, which is refused") as raised:
            reader.read_together(together, ManifestRequest(ALL_COLUMNS), [None] * 3)
        assert raised.value.data["location"] in {manifest.manifest_path for manifest in manifests}


@pytest.mark.slow
def test_a_manifest_list_whose_blocks_together_inflate_to_gigabytes_is_given_up() -> None:
    made = PlannedTable()
    long = made.path("metadata/") + "a" * 16_000
    manifest = replace(made.write([made.file()]), manifest_path=long, sequence_number=1, min_sequence_number=1)
    location = made.path("metadata/list.avro")
    write_manifest_list(
        made.io,
        location,
        [replace(manifest, manifest_path=f"{manifest.manifest_path}{number}") for number in range(2_000)],
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=1,
    )
    data = made.io.read(location)
    data += data[parse_header(data).size :] * 23
    start = time.process_time()
    with pytest.raises(InvalidMetadata, match=r"hold more than [\d,]+, which is refused") as raised:
        len(ManifestList(location, raw=data, file_format=made.io.manifest_format()))
    assert raised.value.data["location"] == location
    assert time.process_time() - start < 20
