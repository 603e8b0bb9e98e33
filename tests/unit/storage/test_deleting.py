"""A file IO that may delete only some files."""

from __future__ import annotations

import pickle

import pytest
from icefield import Plugins
from icefield.storage import FileIO
from icefield.storage.deleting import delete_files


@pytest.fixture
def io() -> FileIO:
    return FileIO(Plugins.installed())


def test_what_may_not_be_deleted_stays_and_is_no_failure(io: FileIO, caplog: pytest.LogCaptureFixture) -> None:
    for name in "ab":
        with io.open_output(f"memory://deletions/{name}") as sink:
            sink.write(b"x")
    limited = io.deleting_only(lambda locations: [each for each in locations if each.endswith("a")])
    for same in (limited, limited.relative_to("memory://deletions"), limited.for_table(None, {"some": "property"})):
        assert delete_files(same, (f"memory://deletions/{name}" for name in "ab")) == 0
    assert [io.exists(f"memory://deletions/{name}") for name in "ab"] == [False, True]
    assert "1 files stay" in caplog.text
    with pytest.raises(TypeError, match="stays in its process"):
        pickle.dumps(limited)
    assert delete_files(io, ["memory://deletions/b"]) == 0
    assert not io.exists("memory://deletions/b")
