"""Names in requests and answers, and listings of all their pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec
from icefield.abc import Page, TableName
from icefield.errors import StorageError
from icefield.toolkit import decodable

from icefield_rest.failures import Uncertain
from icefield_rest.service import Service

_MOST_EMPTY: Final = 1_000
_MOST_NAMES: Final = 10_000_000
N = TypeVar("N", bound="tuple[str, ...]")


@decodable
class Identifier(msgspec.Struct):
    """The name of a table or of a view."""

    namespace: list[str]
    name: str

    @classmethod
    def of(cls, table: TableName) -> Identifier:
        """The form of a name."""
        return cls(list(table[:-1]), table[-1])


@decodable
class NamesPage(msgspec.Struct):
    """A page of the tables or views in a namespace."""

    identifiers: list[Identifier] | None
    next_page_token: str | None = msgspec.field(default=None, name="next-page-token")

    def keys(self) -> Iterator[Any]:
        """Iterate over the keys that identify the names."""
        return (found.name for found in self.identifiers or ())


def listed(
    service: Service, path: str, what: str, decoder: msgspec.json.Decoder[Any], query: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """The pages of a listing, to the last. Raises ``ServiceRefusal``."""
    token, seen, empty, names = "", set[str](), 0, set[Any]()
    while True:
        asked = {**(query or {}), "pageToken": token, "pageSize": str(service.settings.page_size)}
        try:
            page = service.connection.ask("GET", path, what, query=asked).decoded(decoder, what)
        except Uncertain as error:
            raise StorageError(f"{what}: {error}", retryable=True) from error
        yield page
        before = len(names)
        names.update(page.keys())
        empty = 0 if len(names) > before else empty + 1
        if empty > _MOST_EMPTY:
            raise StorageError(
                f"{what}: the service gives more than {_MOST_EMPTY:,} empty pages, or of old names, in a row"
            )
        if len(names) > _MOST_NAMES:
            raise StorageError(f"{what}: the service gives more than {_MOST_NAMES:,} names, the most that are listed")
        token = page.next_page_token
        if not token:
            return
        if token in seen:
            raise StorageError(f"{what}: the service gives the same page again and again")
        seen.add(token)


def page_of(names: list[N], token: str | None, size: int | None) -> Page[N]:
    """The names after ``token``, which is the last name of the page before."""
    rest = sorted(name for name in names if token is None or name[-1] > token)
    if size is None or len(rest) <= size:
        return Page(tuple(rest))
    return Page(tuple(rest[:size]), rest[size - 1][-1])
