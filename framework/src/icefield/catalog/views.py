"""The user's interface to views: queries by dialect, and the schema of their rows, under a name of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from icefield.abc import CatalogBackend, CommitConflict, Conflict, CurrentView, TableName, ViewCatalog, ViewProposal
from icefield.base.notebooks import html_of
from icefield.catalog.identifiers import table_name
from icefield.catalog.telling import told
from icefield.commit import Change, RetryPolicy, settle
from icefield.errors import CommitFailed, InvalidArgument, NoSuchView, NotSupportedByCatalog, ViewExists
from icefield.metadata import (
    ViewMetadata,
    ViewRepresentation,
    ViewRequirement,
    ViewUpdate,
    ViewVersion,
    apply_view_updates,
    new_view_metadata,
    view_creation_updates,
)
from icefield.metadata.properties import COMMIT_RETRY_NUM_RETRIES, property_strings
from icefield.metadata.timestamps import now_ms
from icefield.metadata.updates.base import LAST_ADDED
from icefield.metadata.updates.table import RemoveProperties
from icefield.metadata.view_updates import AssertViewUUID, SetViewProperties, choose_view_version
from icefield.metadata.views import SQL
from icefield.schema import Schema, as_schema, assign_fresh_ids

_RETRIES: Final = "9"
"""The default number of retries of a view: a change is cheap, and several writers may commit at once."""

CheckView = Callable[[TableName, ViewMetadata | None, ViewMetadata], None]
"""Called with a view's name and its metadata before and after a change; raises to refuse the change."""


class View:
    """A view at one version: its queries, the schema of their rows, and how to change it."""

    def __init__(self, backend: ViewCatalog, name: TableName, current: CurrentView) -> None:
        self._backend = backend
        self._name = name
        self._current = current

    @property
    def name(self) -> TableName:
        """The levels of its name."""
        return self._name

    @property
    def metadata(self) -> ViewMetadata:
        """The metadata of this version."""
        return self._current.metadata

    @property
    def metadata_location(self) -> str:
        """The location of the metadata file of this version."""
        return self._current.location

    @property
    def properties(self) -> Mapping[str, str]:
        """Its properties."""
        return self.metadata.properties

    @property
    def sql(self) -> dict[str, str]:
        """The query by dialect."""
        return self.metadata.current_version().sql

    @property
    def default_namespace(self) -> TableName:
        """The namespace of unqualified names in the query."""
        return self.metadata.current_version().default_namespace

    def schema(self) -> Schema:
        """The schema of its rows."""
        return self.metadata.schema()

    def sql_for(self, dialect: str) -> str:
        """The query in a dialect, ignoring case. Raises ``NotSupportedByCatalog`` if the view has none."""
        found = {name.lower(): sql for name, sql in self.sql.items()}.get(dialect.lower())
        if found is None:
            raise NotSupportedByCatalog(
                f"view {'.'.join(self._name)} has no query in the dialect '{dialect}'; it has: "
                f"{', '.join(sorted(self.sql)) or 'none'}"
            )
        return found

    def replace(
        self,
        schema: Schema | pa.Schema,
        sql: Mapping[str, str],
        *,
        default_namespace: Iterable[str] | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> View:
        """The view with another query, and with ``properties`` set in the same change.

        Raises ``InvalidArgument``, also if a dialect of the view is missing.
        """
        namespace = self.default_namespace if default_namespace is None else tuple(default_namespace)
        version = view_version(sql, namespace, default_catalog)
        columns, _ = assign_fresh_ids(as_schema(schema).with_schema_id(0))
        more = [SetViewProperties(property_strings(properties))] if properties else []
        return self._changed(lambda base: (*choose_view_version(base, columns, version), *more))

    def set_properties(self, properties: Mapping[str, Any], removals: Iterable[str] = ()) -> View:
        """The view with other properties."""
        gone = frozenset(removals)
        updates: list[ViewUpdate] = [SetViewProperties(property_strings(properties))] if properties else []
        updates += [RemoveProperties(gone)] if gone else []
        return self._changed(lambda _: updates)

    def _changed(self, build: Callable[[ViewMetadata], Iterable[ViewUpdate]]) -> View:
        requirements = (AssertViewUUID(self.metadata.view_uuid),)
        return View(self._backend, self._name, commit_view(self._backend, self._name, build, requirements))

    _repr_html_ = html_of

    def __repr__(self) -> str:
        return f"View({'.'.join(self._name)!r}, dialects={sorted(self.sql)})"


def commit_view(
    backend: ViewCatalog,
    name: TableName,
    build: Callable[[ViewMetadata], Iterable[ViewUpdate]],
    requirements: Iterable[ViewRequirement] = (),
    judge: CheckView | None = None,
) -> CurrentView:
    """Change a view by the updates that ``build`` returns for its metadata.

    Retries after a conflict if the requirements still hold.

    Raises ``NoSuchView``, ``ValidationFailed``, ``InvalidArgument``, ``CommitStateUnknown``, and ``CommitFailed`` when
    retries did not settle a conflict.
    """
    with backend.io.listeners.operation("commit-view", name):
        change = _ViewChange(backend, name, build, tuple(requirements), judge)
        made = settle(change).result
        backend.io.listeners.changed(change.replaced.metadata.properties, made.metadata.properties)
        return made


class _ViewChange(Change[CurrentView]):
    """A change of a view on its way through the retry loop."""

    def __init__(
        self,
        backend: ViewCatalog,
        name: TableName,
        build: Callable[[ViewMetadata], Iterable[ViewUpdate]],
        requirements: tuple[ViewRequirement, ...],
        judge: CheckView | None,
    ) -> None:
        self._backend, self._view, self.name = backend, name, ".".join(name)
        self._build, self._requirements, self._judge = build, requirements, judge
        self._base = self.replaced = self._loaded()
        properties = {COMMIT_RETRY_NUM_RETRIES.name: _RETRIES, **self._base.metadata.properties}
        self.policy = RetryPolicy.from_properties(properties)
        self.checks = RetryPolicy.of_status_checks(properties)
        self._proposal: ViewProposal | None = None

    def prepare(self) -> CurrentView | None:
        base = self.replaced = self._base
        for requirement in self._requirements:
            requirement.check(base.metadata)
        updates = tuple(self._build(base.metadata))
        metadata = apply_view_updates(base.metadata, updates)
        if metadata is base.metadata:
            return base
        if self._judge is not None:
            self._judge(self._view, base.metadata, metadata)
        self._proposal = ViewProposal(metadata, updates, self._requirements)
        return None

    def publish(self) -> CurrentView | Conflict:
        assert self._proposal is not None
        return self._backend.commit_view(self._view, self._base, self._proposal) or Conflict()

    def found(self) -> CurrentView | None:
        """The view, if it has a new version that this change would not alter; a view has no snapshot to look for."""
        current = self._loaded()
        for requirement in self._requirements:
            requirement.check(current.metadata)
        moved = current.location != self._base.location
        unchanged = apply_view_updates(current.metadata, self._build(current.metadata)) is current.metadata
        return current if moved and unchanged else None

    def tell(self, attempt: int, conflict: Conflict) -> None:
        self._backend.io.listeners.tell(CommitConflict(self._view, attempt, self._base.location, None))

    def renew(self) -> None:
        self._base = self._loaded()

    def lost(self, attempts: int, seconds: float) -> CommitFailed:
        return CommitFailed(
            f"a change of view {self.name} of catalog '{self._backend.name}' lost to others {attempts} times in "
            f"{seconds:.1f} s, and nothing was changed; try again, or raise the view's property "
            f"'{COMMIT_RETRY_NUM_RETRIES.name}' (now {self.policy.num_retries})",
            view=self._view,
            attempts=attempts,
        )

    def _loaded(self) -> CurrentView:
        found = self._backend.load_view(self._view)
        if found is None:
            raise no_view(self._backend, self._view)
        return found


def view_version(
    sql: Mapping[str, str], default_namespace: Iterable[str], default_catalog: str | None = None
) -> ViewVersion:
    """A new version with a query by dialect, on the schema that is added with it."""
    if isinstance(sql, str) or not isinstance(sql, Mapping):
        raise InvalidArgument("give a view's SQL by dialect, such as {'ansi': 'SELECT ...'}")
    queries = tuple(ViewRepresentation(SQL, string, dialect) for dialect, string in sql.items())
    more = {} if default_catalog is None else {"default_catalog": default_catalog}
    return ViewVersion(1, now_ms(), LAST_ADDED, {"engine-name": "icefield"}, queries, tuple(default_namespace), **more)


def no_view(backend: CatalogBackend, name: TableName) -> NoSuchView:
    """The error for a view that is not there."""
    return NoSuchView(f"no view {'.'.join(name)} in catalog '{backend.name}'", view=name)


class ViewsOfCatalog:
    """The methods of ``Catalog`` for views. Each raises ``NotSupportedByCatalog`` where the catalog keeps none."""

    _backend: CatalogBackend
    _list_names: Callable[..., list[TableName]]
    free_location: Callable[[TableName], str]

    @property
    def _views(self) -> ViewCatalog:
        if isinstance(self._backend, ViewCatalog):
            return self._backend
        raise NotSupportedByCatalog(f"catalog '{self._backend.name}' keeps no views")

    def list_views(self, namespace: str | Iterable[str]) -> list[TableName]:
        """The views directly in a namespace, sorted. Raises ``NoSuchNamespace``."""
        return self._list_names("views", namespace, self._views.list_views)

    @told("load-view")
    def load_view(self, identifier: str | Iterable[str]) -> View:
        """A view at its current version. Raises ``NoSuchView``."""
        name = table_name(identifier)
        current = self._views.load_view(name)
        if current is None:
            raise no_view(self._backend, name)
        return View(self._views, name, current)

    def view_exists(self, identifier: str | Iterable[str]) -> bool:
        """Whether there is a view of that name; False where the catalog keeps none."""
        if not isinstance(self._backend, ViewCatalog):
            return False
        return self._backend.load_view(table_name(identifier)) is not None

    @told("create-view")
    def create_view(
        self,
        identifier: str | Iterable[str],
        schema: Schema | pa.Schema,
        sql: Mapping[str, str],
        *,
        default_namespace: Iterable[str] | None = None,
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> View:
        """Create a view: ``sql`` is its query by dialect, ``schema`` is the schema of its rows.

        Raises ``ViewExists``, ``TableExists``, ``NoSuchNamespace``, ``InvalidArgument``.
        """
        name, backend = table_name(identifier), self._views
        version = view_version(sql, name[:-1] if default_namespace is None else default_namespace, default_catalog)
        columns, _ = assign_fresh_ids(as_schema(schema).with_schema_id(0))
        place = (location or self.free_location(name)).rstrip("/")
        metadata = new_view_metadata(columns, version, place, property_strings(properties or {}))
        made = backend.commit_view(name, None, ViewProposal(metadata, view_creation_updates(metadata)))
        if made is None:
            raise ViewExists(f"view {'.'.join(name)} exists already in catalog '{backend.name}'", view=name)
        backend.io.listeners.changed({}, metadata.properties)
        return View(backend, name, made)

    def commit_view(
        self,
        identifier: str | Iterable[str],
        updates: Iterable[ViewUpdate],
        requirements: Iterable[ViewRequirement] = (),
        *,
        judge: CheckView | None = None,
    ) -> View:
        """Change a view by the updates and requirements of the REST catalog protocol.

        ``judge`` is called with the view's name and its metadata before and after the change, and raises to refuse it.
        Raises ``NoSuchView``, ``ValidationFailed``, ``InvalidArgument``, ``CommitFailed``.
        """
        name, steps = table_name(identifier), tuple(updates)
        return View(self._views, name, commit_view(self._views, name, lambda _: steps, requirements, judge))

    @told("rename-view")
    def rename_view(self, from_identifier: str | Iterable[str], to_identifier: str | Iterable[str]) -> View:
        """Rename a view. Raises ``NoSuchView``, ``ViewExists``, ``TableExists``, ``NoSuchNamespace``."""
        target = table_name(to_identifier)
        self._views.rename_view(table_name(from_identifier), target)
        return self.load_view(target)

    @told("drop-view")
    def drop_view(self, identifier: str | Iterable[str]) -> None:
        """Drop a view. Raises ``NoSuchView``."""
        self._views.drop_view(table_name(identifier))
