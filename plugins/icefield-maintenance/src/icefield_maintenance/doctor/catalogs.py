"""The whole of a catalog: its configuration, its credentials, its store, its commits."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from icefield import (
    Catalog,
    Plugins,
    catalog_properties,
    configuration_file,
    configured_catalogs,
    default_catalog_name,
    load_catalog,
)
from icefield.abc import CatalogBackend, CommitStrategy, FileSystem, FileSystemAbility, NamespaceName
from icefield.engine import namespace_name
from icefield.errors import BrokenPlugin, IcefieldError, PluginConflict
from icefield.storage import FileIO
from icefield.toolkit import credentials_in, holds_credential

from icefield_maintenance.doctor.commits import CommitExamination
from icefield_maintenance.doctor.findings import Broken, Finding, Result, Warned, skipped, tried
from icefield_maintenance.doctor.overlaps import CHECK, examine_locations
from icefield_maintenance.doctor.plugins import examine_plugins
from icefield_maintenance.doctor.storage import examine_storage

FOLDER = ".icefield-doctor"
"""The folder of the warehouse below which examinations write."""


def examine(
    name: str | None = None,
    *,
    plugins: Plugins | None = None,
    location: str | None = None,
    namespace: str | None = None,
    writes: bool = True,
    **properties: Any,
) -> Iterator[Finding]:
    """Examine the plugins and a catalog, named and configured as for ``load_catalog``; yield findings as they come.

    ``location``: where to write, instead of the warehouse. ``namespace``: an existing namespace for the test table of
    a metastore; by default a namespace is created and dropped. Without ``writes``, nothing is changed anywhere.
    Raises nothing: each problem is a finding.
    """
    yield from examine_plugins(plugins or Plugins.installed())
    opened: list[Catalog] = []
    configured = _configured(name, properties)
    yield tried("configuration", lambda: _configuration(name, properties), configured)
    yield tried("catalog", lambda: _open(opened, name, plugins, properties), configured)
    if opened:
        with opened[0] as catalog:
            yield from examine_catalog(catalog, location=location, namespace=namespace, writes=writes)


def examine_catalog(
    catalog: Catalog, *, location: str | None = None, namespace: str | None = None, writes: bool = True
) -> Iterator[Finding]:
    """Examine an open catalog: that it answers, its store, and that commits to it exclude each other."""
    backend = catalog.backend
    answers = tried("connection", lambda: _connection(backend), catalog.properties, "list the namespaces")
    yield answers
    if answers.result is Result.OK:
        yield from _locations(catalog)
    place = location or catalog.properties.get("warehouse")
    if not place:
        yield skipped("storage", "the catalog has no property 'warehouse'; name a location to examine")
        return
    found: list[FileSystem] = []
    # Each examination has its own folder, so that concurrent examinations do not interfere.
    folder = f"{place.rstrip('/')}/{FOLDER}/{uuid4().hex[:12]}"
    finding = tried("file system", lambda: _file_system(found, catalog.io, folder), catalog.properties)
    yield finding
    if finding.result is Result.FAILED:
        return
    system, resolved = found[0], catalog.io.resolve(folder)
    stored = examine_storage(
        system, resolved, alternatives=lambda kept: _alternatives(catalog.io.plugins, kept), writes=writes
    )
    yield from stored
    can_write = any(finding.check == "write" and finding.result is Result.OK for finding in stored)
    if writes and not can_write:
        yield skipped("commits", f"nothing could be written below {place}")
    elif writes and answers.result is Result.OK:
        strategy = _strategy_name(catalog.io.plugins, backend)
        yield from _commits(backend, strategy, f"{folder}-table", namespace)
    elif writes:
        yield skipped("commits", "the catalog did not answer")
    system.remove_empty_folder(resolved.rpartition("/")[0])


def _locations(catalog: Catalog) -> Iterator[Finding]:
    try:
        yield from (each for each in examine_locations(catalog) if each.result is not Result.OK)
    except IcefieldError as error:
        yield skipped(CHECK, f"the tables cannot be listed: {error}")


def _configured(name: str | None, properties: Mapping[str, Any]) -> dict[str, str]:
    try:
        return catalog_properties(name or default_catalog_name(), properties)
    except IcefieldError:
        return {}


def _configuration(name: str | None, properties: Mapping[str, Any]) -> str:
    """Where the catalog's properties come from, by name only."""
    called, file = name or default_catalog_name(), configuration_file()
    found = catalog_properties(called, properties)
    if not found:
        others = ", ".join(configured_catalogs()) or "none"
        raise Broken(
            f"nothing is known of catalog '{called}'; configured are: {others}",
            f"configure [catalog.{called}] in icefield.toml, or give its properties",
        )
    written = catalog_properties(called, {}, _file_only())
    secret = [key for key, value in written.items() if holds_credential(key) or credentials_in({key: value})]
    if file is not None and secret and os.name == "posix" and file.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        raise Warned(
            f"{file} holds credentials ({', '.join(sorted(secret))}) and can be read by other users",
            f"chmod 600 {file}, or move them to the environment",
        )
    return f"'{called}': {len(found)} properties" + (f", {file}" if file is not None else ", without icefield.toml")


def _file_only() -> dict[str, str]:
    """The environment without properties of catalogs."""
    named = os.environ.get("ICEFIELD_CONFIG")
    return {"ICEFIELD_CONFIG": named} if named else {}


def _open(opened: list[Catalog], name: str | None, plugins: Plugins | None, properties: Mapping[str, Any]) -> str:
    catalog = load_catalog(name, plugins=plugins, **properties)
    opened.append(catalog)
    return f"{catalog.name} ({type(catalog.backend).__name__})"


def _connection(backend: CatalogBackend) -> str:
    count = len(backend.list_namespaces((), size=100).items)
    said = "1 namespace" if count == 1 else f"{count if count < 100 else '100 or more'} namespaces"
    credentials = backend.credentials()
    return f"{said}; {credentials}" if credentials else said


def _file_system(found: list[FileSystem], io: FileIO, folder: str) -> str:
    system = io.file_system(folder)
    found.append(system)
    abilities = ", ".join(sorted(ability.name for ability in system.abilities)) or "none"
    return f"{type(system).__name__}; it declares {abilities}"


def _alternatives(plugins: Plugins, kept: frozenset[FileSystemAbility]) -> str:
    """The commit strategies that need only the given abilities of the storage."""
    names = []
    for name in plugins.names("commit-strategies"):
        with suppress(BrokenPlugin, PluginConflict):
            needs = plugins.commit_strategy(name).needs
            if not needs or kept.intersection(needs):
                names.append(f"commit='{name}'")
    return f"use {' or '.join([*names, chr(39).join(('a metastore catalog (type=', 'sql', ')'))])} on this storage"


def _commits(backend: CatalogBackend, strategy: str | None, location: str, namespace: str | None) -> Iterator[Finding]:
    """Examine commits to a test table, at a hidden location if its path is its name, else in a namespace."""
    if strategy is not None:
        open_by_name = lambda: backend.io.commit_strategy(strategy, ("icefield_doctor", "probe"), location)  # noqa: E731
        yield from _table(backend, open_by_name, location)
        return
    table_name = f"icefield_doctor_{uuid4().hex[:8]}"
    own: NamespaceName = namespace_name(namespace) if namespace else (table_name,)
    if namespace is None:
        made = tried(
            "create a namespace", lambda: backend.create_namespace(own, {}), backend.properties, "create a namespace"
        )
        if made.result is Result.FAILED:
            advice = f"{made.advice}; or name a namespace that is there (--namespace)"
            yield Finding(made.check, made.result, made.found, advice)
            return
        yield made
    try:
        yield from _table(backend, lambda: backend.strategy((*own, table_name), location), location)
    finally:
        if namespace is None:
            dropped = tried(
                "drop the namespace", lambda: backend.drop_namespace(own), backend.properties, "drop a namespace"
            )
    if namespace is None:
        yield dropped


def _table(backend: CatalogBackend, open_strategy: Callable[[], CommitStrategy], location: str) -> list[Finding]:
    return CommitExamination(open_strategy, backend.io.storage(location), location, backend.properties).run()


def _strategy_name(plugins: Plugins, backend: CatalogBackend) -> str | None:
    """The name of a strategy for file systems, which needs no catalog; None for a metastore's own strategy."""
    try:
        kind = type(backend.strategy(("icefield_doctor", "probe")))
    except IcefieldError:
        return None
    for name in plugins.names("commit-strategies"):
        with suppress(IcefieldError):
            if plugins.commit_strategy(name) is kind:
                return name
    return None
