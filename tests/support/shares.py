"""One of several shares of the tests that a run chooses, so that a few runs in turn run them all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from zlib import crc32


def parsed(share: str) -> tuple[int, int]:
    """The number of a share and how many there are, from text such as ``1/6``. Raises ``ValueError`` for other text."""
    found = re.fullmatch(r"([0-9]+)/([1-9][0-9]*)", share)
    if found is None or int(found[1]) >= int(found[2]):
        raise ValueError(f"a share is a number and how many there are, such as 0/6 or 5/6, and not {share!r}")
    return int(found[1]), int(found[2])


def of_share(items: Sequence[Any], number: int, of: int) -> list[bool]:
    """For each test item, whether it is in the share.

    The tests of a file go to the shares in turn, so that each has some of every file and of the cases of a test. A file
    begins with a share that its name chooses: files of one test each are spread as well.
    """
    seen: dict[str, int] = {}
    chosen = []
    for item in items:
        path = item.nodeid.partition("::")[0]
        place = seen.setdefault(path, crc32(path.encode()))
        seen[path] = place + 1
        chosen.append(place % of == number)
    return chosen
