"""Files of an encrypted table that are damaged, cut, exchanged or replaced: one typed error, and no row."""

from __future__ import annotations

import os
import random
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encrypted_tables import FORMATS, MASTER, SCHEMA, clear_caches, keystore, rows
from icefield import load_catalog
from icefield.errors import DecryptionFailed
from icefield_encryption.streams import BLOCK

MEMORY = "memory://damaged"
COUNT = 5_000 if os.environ.get("ICEFIELD_SOAK") else 300
SEED = 0 if COUNT == 300 else random.SystemRandom().randrange(2**32)
"""A soak tries other files each time; a failure names the seed."""


def in_memory(folder, name, file_format, **properties):
    catalog = load_catalog("test", type="directory", warehouse=f"{MEMORY}/{name}", **{
        "encryption.kms-type": "local", "encryption.local.keystore": str(keystore(folder)),
    })  # fmt: skip
    catalog.create_namespace("db")
    given = {"encryption.key-id": MASTER, "write.format.default": file_format, "write.delete.mode": "merge-on-read"}
    return catalog.create_table("db.t", SCHEMA, properties={**given, **properties})


class Held:
    """The contents of the files in memory, by location."""

    def __init__(self, files):
        self.files = files

    def __getitem__(self, name):
        return self.files[name][0]

    def __setitem__(self, name, data):
        self.files[name] = (data, self.files[name][1])


def files_of(table):
    held = Held(table.io.file_system(MEMORY).files)
    return held, sorted(
        name
        for name in held.files
        if name.startswith(table.location()) and "metadata.json" not in name and "hint" not in name
    )


def damaged(data: bytes, others: list[bytes], chance: random.Random) -> tuple[str, bytes]:
    """A damaged form of a file, and what was done to it."""
    kind = chance.choice(["bit", "bit", "cut", "cut", "exchange", "zeros", "plain", "empty", "moved"])
    place = chance.randrange(len(data))
    match kind:
        case "bit":
            found = bytearray(data)
            found[place] ^= 1 << chance.randrange(8)
            return f"bit at {place}", bytes(found)
        case "cut":
            return f"cut at {place}", data[:place]
        case "exchange":
            return kind, chance.choice([other for other in others if other != data])
        case "zeros":
            end = min(len(data), place + chance.randrange(1, 200))
            return f"zeros at {place}", data[:place] + bytes(end - place) + data[end:] if any(
                data[place:end]
            ) else data[:place]
        case "plain":
            table = pa.BufferOutputStream()
            pq.write_table(rows(0), table)
            return kind, table.getvalue().to_pybytes()
        case "empty":
            return kind, b""
    return kind, data[place:] + data[:place] if place else data[1:]


@pytest.mark.counted
@pytest.mark.slow
@pytest.mark.spec("ENC-04", "ENC-05")
@pytest.mark.parametrize("file_format", FORMATS)
def test_a_damaged_or_exchanged_file_raises_one_error_and_gives_no_row(tmp_path, file_format):
    table = in_memory(tmp_path, f"fuzz-{file_format}", file_format)
    for turn in range(3):
        table.append(rows(100 * turn))
    table.delete("id in (5, 105, 205)")
    held, names = files_of(table)
    used = {task.file.file_path for task in table.scan().plan_files()}
    used |= {file.file_path for task in table.scan().plan_files() for file in task.delete_files}
    used |= {table.current_snapshot().manifest_list, *table.inspect.manifests().column("path").to_pylist()}
    names = [name for name in names if name in used]
    assert len(names) >= 8
    whole, chance = {name: held[name] for name in names}, random.Random(f"{file_format}-{SEED}")
    for turn in range(COUNT):
        name = names[turn % len(names)]
        what, held[name] = damaged(whole[name], [*whole.values()], chance)
        clear_caches()
        try:
            found = table.scan().to_arrow()
        except DecryptionFailed:
            pass
        except Exception as error:
            raise AssertionError(f"seed {SEED}: {name}: {what}: {type(error)}: {error}") from error
        else:
            raise AssertionError(f"seed {SEED}: {name}: {what}: {len(found)} rows")
        held[name] = whole[name]
    clear_caches()
    assert len(table.scan().to_arrow()) == 297


def test_a_file_of_an_earlier_snapshot_does_not_replace_a_later_one(tmp_path):
    table = in_memory(tmp_path, "replay", "parquet")
    table.append(rows(0))
    held, before = files_of(table)
    table.overwrite(rows(500))
    names = {name for name in files_of(table)[1] if name not in before}
    for new in names:
        for old in before:
            if new.rsplit(".")[-1] == old.rsplit(".")[-1]:
                kept, held[new] = held[new], held[old]
                clear_caches()
                try:
                    found = table.scan().to_arrow()
                except DecryptionFailed:
                    pass
                else:  # a scan does not read the manifest of deleted entries
                    assert sorted(found.column("id").to_pylist()) == [*range(500, 600)]
                held[new] = kept


def test_the_blocks_of_a_large_file_are_neither_reordered_nor_dropped(tmp_path):
    table = in_memory(tmp_path, "blocks", "avro", **{"write.avro.compression-codec": "uncompressed"})
    table.append(rows(0, 150_000))
    (path,) = (task.file.file_path for task in table.scan().plan_files())
    held, _ = files_of(table)
    whole, step = held[path], BLOCK + 28
    assert len(whole) > 8 + 3 * step
    assert whole[:8] == b"AGS1" + struct.pack("<i", BLOCK)
    blocks = [whole[place : place + step] for place in range(8, len(whole), step)]
    for order in (
        [1, 0, *range(2, len(blocks))],
        [*range(len(blocks) - 1)],
        [0, 0, *range(2, len(blocks))],
        [*range(1, len(blocks))],
    ):
        held[path] = whole[:8] + b"".join(blocks[number] for number in order)
        with pytest.raises(DecryptionFailed):
            table.scan().to_arrow()
    held[path] = whole
    assert len(table.scan().to_arrow()) == 150_000
