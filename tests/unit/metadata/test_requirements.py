"""Requirements: a fulfilled one passes, a broken one is a conflict that states whether a retry can help."""

import pytest
from icefield.errors import CommitFailed, ValidationFailed
from icefield.metadata import apply_updates
from icefield.metadata.refs import MAIN_BRANCH, branch
from icefield.metadata.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotID,
    AssertTableUUID,
    TableRequirement,
    check,
)
from icefield.metadata.updates.snapshots import AddSnapshot, SetSnapshotRef
from metadata_examples import V1_MINIMAL, load, new_table, snapshot_for

EMPTY = new_table()
TABLE = apply_updates(EMPTY, [AddSnapshot(snapshot_for(EMPTY, 11)), SetSnapshotRef(MAIN_BRANCH, branch(11))])

HOLDING = [
    AssertTableUUID(TABLE.table_uuid.upper()),
    AssertRefSnapshotID(MAIN_BRANCH, 11),
    AssertRefSnapshotID("audit", None),
    AssertLastAssignedFieldId(3),
    AssertCurrentSchemaId(0),
    AssertLastAssignedPartitionId(1000),
    AssertDefaultSpecId(0),
    AssertDefaultSortOrderId(0),
]
FAILING = [
    (AssertCreate(), True),
    (AssertTableUUID("00000000-0000-4000-8000-000000000000"), False),
    (AssertRefSnapshotID(MAIN_BRANCH, 12), True),
    (AssertRefSnapshotID(MAIN_BRANCH, None), True),
    (AssertRefSnapshotID("audit", 11), True),
    (AssertLastAssignedFieldId(2), False),
    (AssertCurrentSchemaId(1), False),
    (AssertLastAssignedPartitionId(999), False),
    (AssertDefaultSpecId(1), False),
    (AssertDefaultSortOrderId(1), False),
]


def test_what_holds_passes():
    check(HOLDING, TABLE)
    check([AssertCreate()], None)
    check([], None)
    assert all(isinstance(requirement, TableRequirement) for requirement in HOLDING)


@pytest.mark.spec("COMMIT-16", "META-03")
@pytest.mark.parametrize(("requirement", "retry_helps"), FAILING, ids=lambda value: repr(value)[:40])
def test_what_does_not_hold_says_whether_a_retry_helps(requirement, retry_helps):
    with pytest.raises(CommitFailed) as caught:
        check([*HOLDING, requirement], TABLE)
    assert caught.value.retryable is retry_helps
    assert isinstance(caught.value, ValidationFailed) is not retry_helps
    assert caught.value.requirement == requirement.type


@pytest.mark.parametrize("requirement", HOLDING, ids=lambda requirement: type(requirement).__name__)
def test_a_table_that_is_gone_fails_every_requirement_but_creation(requirement):
    with pytest.raises(ValidationFailed, match="does not exist"):
        check([requirement], None)


def test_a_table_without_a_uuid_is_not_the_one_that_has_one():
    with pytest.raises(ValidationFailed, match="uuid"):
        check([AssertTableUUID("fb072c92-a02b-11e9-ae9c-1bb7bc9eca94")], load(V1_MINIMAL))


@pytest.mark.parametrize(
    ("ref", "expected", "words"),
    [
        (MAIN_BRANCH, 12, "'main' was at snapshot 12 and is now at snapshot 11"),
        (MAIN_BRANCH, None, "'main' was absent and is now at snapshot 11"),
        ("audit", 11, "'audit' was at snapshot 11 and is now absent"),
    ],
)
def test_a_moved_reference_is_described(ref, expected, words):
    with pytest.raises(CommitFailed, match=words):
        check([AssertRefSnapshotID(ref, expected)], TABLE)
