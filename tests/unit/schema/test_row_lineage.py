"""Row lineage: stored values of rows, and values that rows inherit from their file."""

import pyarrow as pa
import pytest
from icefield.schema.row_lineage import RowLineage
from icefield.types.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID


@pytest.mark.spec("ROW-12")
@pytest.mark.parametrize(
    ("stored", "ids", "numbers"),
    [([5, 6], [5, 6], [5, 6]), ([5, None], [5, 103], [5, 7]), ([None, None], [102, 103], [7, 7])],
)
def test_rows_inherit_only_missing_values(stored, ids, numbers):
    lineage, array, positions = RowLineage(100, 7), pa.array(stored, pa.int64()), pa.array([2, 3])
    assert lineage.inherited(ROW_ID.field_id, array, positions).to_pylist() == ids
    assert lineage.inherited(LAST_UPDATED_SEQUENCE_NUMBER.field_id, array, positions).to_pylist() == numbers
    unknown = RowLineage(100, None).inherited(LAST_UPDATED_SEQUENCE_NUMBER.field_id, array, positions)
    assert unknown.to_pylist() == stored
