"""A request as handlers see it: its names, its query and its body, all checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from icefield.errors import FileMissing, InvalidArgument, InvalidMetadata, MissingPlugin, StorageError

from icefield_rest_server.tokens import Principal

SEPARATOR = "\x1f"
_MAX_LEVELS, _MAX_NAME = 64, 1024
_MAX_UPDATES, _MAX_DESCRIBING = 5_000, 200
_DESCRIBING = frozenset({"add-schema", "add-spec", "add-sort-order", "add-view-version"})


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the parts of its path by name, its query, its headers in lower case, and its JSON body.

    ``digest`` is that of the body as it was sent.
    """

    operation: str
    parts: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any = None
    principal: Principal | None = None
    more: dict[str, Any] = field(default_factory=dict)
    digest: bytes = b""

    @property
    def who(self) -> str:
        """The name of the principal; empty for a program of this machine."""
        return "" if self.principal is None else self.principal.name

    @property
    def namespace(self) -> tuple[str, ...]:
        """The namespace in the path."""
        return levels(self.parts["namespace"].split(SEPARATOR), "namespace")

    @property
    def target(self) -> tuple[str, ...]:
        """The namespace, table or view named by the path, or else by the body or the query; empty without a name."""
        if self.operation == "createNamespace":
            return levels(self.document().get("namespace"), "namespace")
        if self.operation == "listNamespaces" and (parent := self.query.get("parent")):
            return levels(parent.split(SEPARATOR), "namespace")
        if "namespace" not in self.parts:
            return ()
        return self.name(next((part for part in ("table", "view") if part in self.parts), None))

    def name(self, part: str | None) -> tuple[str, ...]:
        """The levels of a table or view in the path."""
        return self.namespace if part is None else levels((*self.namespace, self.parts[part]), part)

    def document(self) -> dict[str, Any]:
        """The body, which must be an object."""
        if not isinstance(self.body, dict):
            raise InvalidArgument("the body must be a JSON object")
        return self.body

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false; false where it is not given."""
        value = self.query.get(name, "false").lower()
        if value not in ("true", "false"):
            raise InvalidArgument(f"the parameter {name} is true or false, not '{value:.40}'")
        return value == "true"


def levels(given: Any, what: str) -> tuple[str, ...]:
    """Return the levels of a name. Raises ``InvalidArgument`` for names that no catalog or folder can have."""
    if not isinstance(given, (list, tuple)) or not 0 < len(given) <= _MAX_LEVELS:
        raise InvalidArgument(f"a {what}'s name has 1 to {_MAX_LEVELS} levels")
    for level in given:
        good = isinstance(level, str) and 0 < len(level) <= _MAX_NAME and level.isprintable()
        if not good or not level.strip() or level in (".", ".."):
            raise InvalidArgument(f"a {what}'s name has a level that is empty, only dots, too long or not printable")
        if "/" in level or "\\" in level:
            raise InvalidArgument(
                f"a {what}'s name has a level with a slash: levels are folders where the files are, and '{level:.100}' "
                "would be several, which may be another's"
            )
    return tuple(given)


def identifier(given: Any, what: str) -> tuple[str, ...]:
    """A table's or view's name in a body: ``{"namespace": [...], "name": ...}``."""
    if not isinstance(given, dict) or not isinstance(given.get("namespace"), list):
        raise InvalidArgument(f"'{what}' must be an object with 'namespace', a list, and 'name'")
    return levels((*given["namespace"], given.get("name")), what)


def renaming(call: Call) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the old and the new name of a table or view."""
    document = call.document()
    source, target = (identifier(document.get(key), key) for key in ("source", "destination"))
    if min(len(source), len(target)) < 2:
        raise InvalidArgument("the name of a table or view has a namespace")
    return source, target


def strings(given: Any, what: str) -> dict[str, str]:
    """An object of strings; empty where it is absent."""
    return typed(given, dict[str, str], what) if given is not None else {}


def typed(given: Any, kind: Any, what: str) -> Any:
    """Convert a value of a body to its expected type. Raises ``InvalidArgument``, naming the value."""
    try:
        return msgspec.convert(given, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidArgument(f"'{what}': {error}") from error


def check_updates(*given: Any) -> None:
    """Raise ``InvalidArgument`` where changes of tables or views have more updates than a request may.

    Each update costs as much as the whole metadata, and a new schema, spec or order is compared with all existing ones.
    """
    updates = [update for each in given if isinstance(each, list) for update in each]
    actions = [update.get("action") for update in updates if isinstance(update, dict)]
    describing = sum(isinstance(action, str) and action in _DESCRIBING for action in actions)
    if len(updates) > _MAX_UPDATES or describing > _MAX_DESCRIBING:
        raise InvalidArgument(
            f"a request has up to {_MAX_UPDATES:,} updates, of which up to {_MAX_DESCRIBING} add schemas, partition "
            f"specs, sort orders and versions of views; this one has {len(updates):,}, of which {describing:,}"
        )


@contextmanager
def stated_by_the_client() -> Iterator[None]:
    """Turn errors of metadata and locations that the client states into ``InvalidArgument``."""
    try:
        yield
    except (InvalidMetadata, FileMissing, MissingPlugin, StorageError) as error:
        if error.retryable:
            raise
        raise InvalidArgument(error.message) from error
