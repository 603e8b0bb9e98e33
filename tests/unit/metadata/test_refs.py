"""Branches and tags."""

import pickle

import msgspec
import pytest
from icefield.errors import InvalidArgument
from icefield.metadata.refs import RefType, SnapshotRef, branch, tag
from vectors import VECTORS


@pytest.mark.spec("REF-01", "REF-02", "REF-04", "JSON-20")
def test_the_vector_reads_and_writes():
    refs = msgspec.json.decode(msgspec.json.encode(VECTORS["refs_json"]), type=dict[str, SnapshotRef])
    assert refs == {"test": SnapshotRef(123456789000, RefType.TAG, max_ref_age_ms=10_000_000)}
    assert msgspec.json.decode(msgspec.json.encode(refs)) == VECTORS["refs_json"]
    assert refs["test"].is_tag
    assert not refs["test"].is_branch


@pytest.mark.spec("REF-02")
def test_types_are_distinguished_whatever_their_case():
    assert SnapshotRef(1, "BRANCH") == branch(1)
    assert msgspec.json.decode(b'{"snapshot-id":1,"type":"Tag"}', type=SnapshotRef) == tag(1)
    assert str(RefType.TAG) == "tag"
    assert pickle.loads(pickle.dumps(branch(1))) == branch(1)
    assert len({branch(1), branch(1), tag(1)}) == 2
    for wrong in ("bookmark", 1, None):
        with pytest.raises(InvalidArgument, match="branch"):
            SnapshotRef(1, wrong)


@pytest.mark.spec("REF-03", "REF-04")
@pytest.mark.parametrize("name", ["min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"])
def test_retention_is_positive_and_mostly_for_branches(name):
    assert getattr(SnapshotRef(1, "branch", **{name: 5}), name) == 5
    for wrong in (0, -1, 2**63, 1.5, True, "5"):
        with pytest.raises(InvalidArgument, match=name):
            SnapshotRef(1, "branch", **{name: wrong})
    if name == "max_ref_age_ms":
        assert SnapshotRef(1, "tag", max_ref_age_ms=5).is_tag
    else:
        with pytest.raises(InvalidArgument, match="branch only"):
            SnapshotRef(1, "tag", **{name: 5})
