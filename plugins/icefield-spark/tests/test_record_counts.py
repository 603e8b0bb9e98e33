"""Files that hold another number of rows than their manifest says, on an executor."""

import pickle

import pyarrow as pa
import pytest
from icefield.errors import InvalidFile
from icefield_spark.chunks import ChunkContext, plan_chunks
from icefield_spark.types import to_spark_schema


@pytest.mark.parametrize("where", [None, "id > 1"])
def test_a_chunk_with_a_file_that_contradicts_its_manifest_is_refused(people, where):
    (file,) = [task.file for task in people.scan().plan_files()][:1]
    rows = people.scan().count()
    people.delete()
    action = people.update_snapshot().merge_append().append_file(file)
    object.__setattr__(file, "record_count", 0)  # as a writer states it that is wrong
    action.commit()
    scan = people.scan(where) if where else people.scan()
    (chunk,) = plan_chunks(scan)
    context = pickle.loads(pickle.dumps(ChunkContext.of(scan, to_spark_schema(people.schema()))))
    with pytest.raises(InvalidFile, match="its manifest says 0"):
        pa.Table.from_batches(context.read(chunk))
    assert rows > 0
