"""Damaged manifests: a typed error that names the location, and never anything else."""

from dataclasses import replace

import numpy as np
import pytest
from foreign_manifests import put, read
from icefield.errors import InvalidMetadata, UnsupportedFeature
from icefield.manifest import ALL_COLUMNS, ManifestWriter
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
    # A list that errs in one of them is no proof.
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
    assert len(refused) > 150
    assert all(location in message for location, message in refused)
