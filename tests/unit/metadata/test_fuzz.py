"""Reading a metadata file with arbitrary bytes gives metadata or one of the project's own errors."""

import gzip
import json
import os
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.errors import IcefieldError
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, encode_metadata
from icefield.metadata.updates.snapshots import AddSnapshot, RemoveSnapshotRef, RemoveSnapshots
from icefield.metadata.updates.table import SetProperties, UpgradeFormatVersion
from metadata_examples import LOCATION, V3, document, snapshot_for
from outcomes import counted_outcomes
from vectors import VECTORS

EXAMPLES = 8_000 if os.environ.get("ICEFIELD_SOAK") else 400

RICH = document(
    V3,
    statistics=[
        {
            "snapshot-id": 1,
            "statistics-path": "s3://s",
            "file-size-in-bytes": 1,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [{"type": "t", "snapshot-id": 1, "sequence-number": 1, "fields": [1]}],
        }
    ],
    partition_statistics=[{"snapshot-id": 1, "statistics-path": "s3://p", "file-size-in-bytes": 1}],
    encryption_keys=[{"key-id": "k", "encrypted-key-metadata": "c2VjcmV0", "properties": {"a": "b"}}],
    partition_specs=[{"spec-id": 0, "fields": []}, VECTORS["partition_spec_json"]["v3_multi_arg"]],
    sort_orders=[VECTORS["unsorted_order_json"], VECTORS["sort_order_json"]],
    schemas=[{**entry["json"], "schema-id": number} for number, entry in enumerate(VECTORS["schema_json"])],
    properties={"write.metadata.previous-versions-max": "3", "a": "b"},
    snapshots=[
        {
            "snapshot-id": 1,
            "parent-snapshot-id": 2,
            "sequence-number": 0,
            "timestamp-ms": 5,
            "summary": {"operation": "append"},
            "manifest-list": "s3://l",
            "schema-id": 0,
            "first-row-id": 0,
            "added-rows": 0,
        }
    ],
    snapshot_log=[{"snapshot-id": 1, "timestamp-ms": 5}],
    metadata_log=[{"metadata-file": "s3://m", "timestamp-ms": 5}],
    refs={"main": {"snapshot-id": 1, "type": "branch"}, "t": {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 5}},
    current_snapshot_id=1,
    last_column_id=6,
    last_partition_id=1002,
)
DOCUMENTS = [entry["json"] for entry in VECTORS["table_metadata"]] + [RICH]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 1.0, -0.0, 1e300, 0.5]),
    st.text(max_size=5),
    st.sampled_from(
        ["-1", "long", "struct", "list", "decimal(99,1)", "fixed[0]", "bucket[0]", "day", "main", "\ud800"]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    found = [path]
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        found += places(child, (*path, key))
    return found


def mutate(root: Any, path: tuple[Any, ...], change: str, value: Any) -> Any:
    if not path:
        return value
    parent = root
    for step in path[:-1]:
        parent = parent[step]
    last = path[-1]
    if change == "drop":
        del parent[last]
    elif change == "double" and isinstance(parent, list):
        parent.append(parent[last])
    elif change == "wrap":
        parent[last] = [parent[last]]
    elif change == "rename" and isinstance(parent, dict):
        parent[str(value)[:20]] = parent.pop(last)
    else:
        parent[last] = value
    return root


def use(metadata: TableMetadata) -> None:
    """Use every attribute of the metadata, and change it."""
    repr(metadata)
    for ask in (
        lambda: [list(array) for array in (metadata.schemas, metadata.partition_specs, metadata.sort_orders)],
        lambda: list(metadata.snapshots),
        lambda: [snapshot.operation for snapshot in metadata.ancestors(metadata.current_snapshot_id)],
        lambda: list(metadata.statistics),
        lambda: list(metadata.partition_statistics),
        lambda: list(metadata.encryption_keys),
        lambda: metadata.snapshot_as_of(10**15),
        lambda: metadata.spec().partition_type(metadata.schema()),
        lambda: decode_metadata(encode_metadata(metadata), LOCATION),
        lambda: apply_updates(metadata, [UpgradeFormatVersion(3), SetProperties({"x": "y"})]),
        lambda: apply_updates(metadata, [AddSnapshot(snapshot_for(metadata, 77, schema_id=None))]),
        lambda: apply_updates(metadata, [RemoveSnapshotRef("main"), RemoveSnapshotRef("t"), RemoveSnapshots([1])]),
    ):
        with suppress(IcefieldError):
            ask()


outcomes = counted_outcomes()


def survive(data: bytes) -> None:
    """Check that an error names the file, and raise the Icefield error that refuses the metadata."""
    try:
        metadata = decode_metadata(data, LOCATION)
    except IcefieldError as error:
        refusal = error
    else:
        use(metadata)
        return
    assert LOCATION in str(refusal)
    assert refusal.location == LOCATION
    raise refusal


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_document_that_was_tampered_with_gives_metadata_or_an_error_of_ours(outcomes, data):
    source = json.loads(json.dumps(data.draw(st.sampled_from(DOCUMENTS))))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(source)))
        change = data.draw(st.sampled_from(["set", "drop", "double", "wrap", "rename"]))
        source = mutate(source, path, change, data.draw(values))
    with outcomes.of("tampered", IcefieldError):
        survive(json.dumps(source).encode())


@pytest.mark.parametrize("seed", range(20))
def test_bytes_that_were_garbled_give_metadata_or_an_error_of_ours(outcomes, seed):
    draw = random.Random(seed)
    for _ in range(60):
        data = bytearray(json.dumps(draw.choice(DOCUMENTS), ensure_ascii=False).encode())
        if draw.random() < 0.3:
            data = bytearray(gzip.compress(bytes(data)))
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(data))
            match draw.randrange(4):
                case 0:
                    data[at] = draw.randrange(256)
                case 1:
                    del data[at:]
                case 2:
                    del data[at : at + draw.randint(1, 20)]
                case 3:
                    data[at:at] = draw.choice([b'"', b"{", b"[", b"}", b",", b"\\u", b"\xff", b"9" * 40, b"-", b"1e5"])
            if not data:
                break
        with outcomes.of("garbled", IcefieldError):
            survive(bytes(data))


def test_the_document_that_is_tampered_with_is_sound():
    use(decode_metadata(json.dumps(RICH).encode(), LOCATION))
    metadata = decode_metadata(json.dumps(RICH).encode(), LOCATION)
    assert list(metadata.statistics)
    assert list(metadata.encryption_keys)
    assert json.loads(encode_metadata(metadata)) == RICH
