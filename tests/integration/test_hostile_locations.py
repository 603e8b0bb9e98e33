"""A hostile location in a table never causes a request to another host than the configured endpoint."""

from __future__ import annotations

import pytest
from fuzzing import COUNT
from hostile_locations import fuzz


@pytest.mark.counted
@pytest.mark.slow
def test_no_location_leads_to_another_host_and_none_is_sent_otherwise_than_it_was_checked() -> None:
    found = fuzz(COUNT)
    assert sum(sum(counts.values()) for counts in found.values()) == COUNT
    for name, counts in found.items():
        assert counts.get("refused"), f"{name}: nothing was refused: {counts}"
        assert counts.get("sent") or name in ("file", "memory"), f"{name}: nothing was sent: {counts}"
        assert counts.get("sent") or counts.get("accepted"), f"{name}: nothing was accepted: {counts}"


@pytest.mark.slow
def test_the_judge_sees_a_file_system_that_asks_any_host() -> None:
    with pytest.raises(AssertionError, match=r"this may not be|reached for|arrived|sent as"):
        fuzz(100, only="fsspec", web="Trusting")
