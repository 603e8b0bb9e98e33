"""The names in a catalog, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeVar

from icefield.abc import Page
from icefield.base.limits import MAX_LISTED_CHARACTERS, MAX_LISTED_NAMES
from icefield.errors import InvalidMetadata

Name = TypeVar("Name", bound="tuple[str, ...]")


def pages(listing: str, read: Callable[[str | None], Page[Name]]) -> Iterator[Name]:
    """The names of all pages. Raises ``InvalidMetadata`` if the pages do not end; a page may be empty."""
    page = read(None)
    steps = characters = 0
    while True:
        steps += max(1, len(page.items))
        characters += sum(map(len, chain.from_iterable(page.items)))
        if steps > MAX_LISTED_NAMES or characters > MAX_LISTED_CHARACTERS:
            raise InvalidMetadata(
                f"{listing} do not end after {steps:,} names and pages, and {characters:,} characters; "
                f"{MAX_LISTED_NAMES:,} and {MAX_LISTED_CHARACTERS:,} are the most: load tables by their names"
            )
        yield from page.items
        if page.next_token is None:
            return
        page = read(page.next_token)
