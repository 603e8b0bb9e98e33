"""Times as callers give them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from icefield.errors import InvalidArgument
from icefield.metadata.timestamps import as_milliseconds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, 5),
        (-1, -1),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01.5Z", 1500),
        (" 1970-01-01 01:00:00+01:00 ", 0),
        (datetime(1970, 1, 2), 86_400_000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999_900, tzinfo=UTC), -1),
    ],
)
def test_a_time_is_milliseconds_a_datetime_or_a_string(given: Any, expected: int) -> None:
    assert as_milliseconds(given) == expected


@pytest.mark.parametrize("given", ["yesterday", "", 1.5, True, None, 2**63, b"1970"])
def test_what_is_no_time_is_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument, match="time"):
        as_milliseconds(given)
