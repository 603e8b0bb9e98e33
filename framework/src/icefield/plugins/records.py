"""The kinds of things that plugins provide, and the records that their hooks return, checked."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pluggy

from icefield.abc import CatalogBackend, CommitStrategy, FileFormat, FileSystem, KeyService, TableEncryption
from icefield.base.spelling import was_meant
from icefield.errors import BrokenPlugin, InvalidArgument
from icefield.metadata.properties import TABLE_PROPERTIES, Property, check_property_name
from icefield.plugins.extras import EXTRAS
from icefield.plugins.hookspecs import PROJECT, InstallHint, Provider, TableService

PREFER: Final = "plugins.prefer"
"""Properties ``plugins.prefer.<kind>.<name>`` of a catalog choose between plugins that provide one name."""

DISABLE: Final = "plugins.disable"
"""Property of a catalog: the names of plugins to disable, separated by commas."""

EVENTS: Final = "icefield_events"
"""The hook of listeners."""


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """The description of one plugin: its distribution and version, its providers, and its error, if it failed.

    A disabled plugin provides nothing; ``provides`` shows its providers all the same. ``listens``: whether it has the
    hook ``icefield_events``.
    """

    name: str
    distribution: str | None = None
    version: str | None = None
    provides: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    disabled: bool = False
    listens: bool = False

    def __str__(self) -> str:
        origin = f"{self.distribution} {self.version}" if self.distribution else "not from a distribution"
        return f"'{self.name}' ({origin})"


@dataclass(frozen=True, slots=True)
class PluginKind:
    """One kind of thing that plugins provide. Its name is that of ``Plugins.providers``: ``file-formats``."""

    name: str
    hook: str
    """The name of the hook that gives its providers."""

    contract: type[FileFormat | FileSystem | CommitStrategy | CatalogBackend | KeyService | TableEncryption] | None
    """The class that targets are subclasses of; None for services, which are made by any callable."""

    noun: str
    """The kind in words, for one of it: ``file format``."""

    def names_of(self, provider: Provider) -> tuple[str, ...]:
        """The names under which a provider is found as this kind."""
        if self.name == "catalog-uris":
            return provider.uri_schemes
        return (provider.uri_schemes if self.name == "file-systems" else ()) or provider.names


KINDS = {
    kind.name: kind
    for kind in (
        PluginKind("file-formats", "icefield_file_formats", FileFormat, "file format"),
        PluginKind("file-systems", "icefield_file_systems", FileSystem, "file system"),
        PluginKind("commit-strategies", "icefield_commit_strategies", CommitStrategy, "commit strategy"),
        PluginKind("catalogs", "icefield_catalogs", CatalogBackend, "catalog"),
        PluginKind("catalog-uris", "icefield_catalogs", CatalogBackend, "catalog of URIs"),
        PluginKind("key-services", "icefield_key_services", KeyService, "key service"),
        PluginKind("encryptions", "icefield_encryptions", TableEncryption, "encryption of tables"),
        PluginKind("table-services", "icefield_table_services", None, "service of tables"),
        PluginKind("transaction-services", "icefield_table_services", None, "service of transactions"),
        PluginKind("scan-services", "icefield_table_services", None, "service of scans"),
        PluginKind("filter-services", "icefield_table_services", None, "filters"),
    )
}


def kind_of(hook: str) -> str:
    """The kind of the records of a hook that a plugin specifies, in properties: ``rest-authenticators``."""
    return hook.removeprefix(f"{PROJECT}_").replace("_", "-")


def names_of(record: Any) -> tuple[str, ...]:
    """The names under which a record of a plugin's own hook is found."""
    if isinstance(record, Provider):
        return record.names
    return (record.name,) if hasattr(record, "name") else ()


def specified(manager: pluggy.PluginManager) -> set[str]:
    """The names of the hooks that are specified, by the kernel or by plugins."""
    return {name for name, hook in vars(manager.hook).items() if hook.spec is not None}


def check_hook_names(manager: pluggy.PluginManager, plugin: Any) -> None:
    """Refuse functions that pluggy would silently never call: unknown hooks, and hooks without the marker.

    A hook marked with ``optionalhook=True`` may be absent here: another plugin or a later version specifies it.
    """
    hooks = specified(manager)
    for name in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, name)
        marked = options is not None
        if options is not None and name not in hooks and not options.get("optionalhook"):
            raise BrokenPlugin(f"'{name}' is no hook of Icefield; the hooks are {', '.join(sorted(hooks))}")
        if not marked and name in hooks:
            raise BrokenPlugin(f"'{name}' is not marked with @hookimpl, so it would never be called")
        if marked:
            _check_function(name, getattr(plugin, name))


def _check_function(name: str, function: Any) -> None:
    """Refuse coroutine functions, and generator functions as listeners: a call would not run their bodies."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise BrokenPlugin(
            f"'{name}' is a coroutine function, and nothing would await it: define it with 'def' instead of "
            "'async def', and let it pass its work to an event loop, such as by asyncio.run_coroutine_threadsafe"
        )
    if name == EVENTS and inspect.isgeneratorfunction(function):
        raise BrokenPlugin(f"'{name}' is a generator function, and nothing would run it: remove its 'yield'")


def check_contract(plugin: PluginInfo, provider: Provider, kind: str, name: str) -> None:
    """Refuse a provider if its range of contract versions does not include the kernel's version."""
    contract, stated = KINDS[kind].contract, provider.contract
    if contract is None or stated is None or stated[0] <= contract.contract <= stated[1]:
        return
    low, high = stated
    versions = f"version {low}" if low == high else f"versions {low} to {high}"
    older, newer = ("the plugin", "icefield") if high < contract.contract else ("icefield", "the plugin")
    raise BrokenPlugin(
        f"plugin {plugin} provides {KINDS[kind].noun} '{name}' for {versions} of the contract "
        f"icefield.abc.{contract.__name__}, and this version of icefield has version {contract.contract}: "
        f"{older} is older than {newer}; upgrade it",
        plugin=plugin.name,
    )


def providers_of(plugin: Any, kind: PluginKind) -> Iterator[Provider]:
    """The providers of a kind that a plugin returns. Raises ``InvalidArgument`` for a wrong one."""
    if kind.contract is None:
        yield from (
            Provider(each.name, each.target)
            for each in _services(plugin, kind.hook)
            if kind.name == f"{each.of}-services"
        )
        return
    for provider in returned_by(plugin, kind.hook):
        if not isinstance(provider, Provider) or not provider.names or ":" not in provider.target:
            raise InvalidArgument(f"{kind.hook} returned {provider!r}, which is no Provider(names, 'module:attribute')")
        if not _is_range(provider.contract):
            raise InvalidArgument(f"{kind.hook} returned {provider!r}, whose contract is no pair (lowest, highest)")
        yield provider


def properties_of(plugin: Any) -> Iterator[Property]:
    """The table properties that a plugin declares. Raises ``InvalidArgument`` for a wrong one."""
    hook = "icefield_table_properties"
    for each in returned_by(plugin, hook):
        if not isinstance(each, Property) or not each.name:
            raise InvalidArgument(f"{hook} returned {each!r}, which is no Property(name, type, default, doc)")
        if each.name in TABLE_PROPERTIES:
            raise InvalidArgument(f"{hook} returned '{each.name}', which is a property of the kernel")
        check_property_name(each.name)
        if each.default is not None:
            each.parse(str(each.default))
        yield each


def _services(plugin: Any, hook: str) -> Iterator[TableService]:
    for each in returned_by(plugin, hook):
        if not isinstance(each, TableService) or f"{each.of}-services" not in KINDS or ":" not in each.target:
            raise InvalidArgument(f"{hook} returned {each!r}, which is no TableService(name, 'module:attribute')")
        if not each.name.isidentifier() or each.name.startswith("_"):
            raise InvalidArgument(f"{hook} returned {each!r}, whose name is that of no public attribute")
        yield each


def _is_range(contract: Any) -> bool:
    """Whether ``contract`` is a pair of versions in ascending order, or None."""
    if contract is None:
        return True
    is_pair = isinstance(contract, tuple) and len(contract) == 2 and all(type(each) is int for each in contract)
    return is_pair and contract[0] <= contract[1]


def install_hints_of(plugin: Any) -> list[InstallHint]:
    """The installation hints that a plugin returns. Raises ``InvalidArgument`` for a wrong one."""
    hints = []
    for hint in returned_by(plugin, "icefield_install_hints"):
        if not isinstance(hint, InstallHint) or not hint.names or not _is_requirement(hint.requirement):
            raise InvalidArgument(
                f"icefield_install_hints returned {hint!r}, which is no InstallHint(kind, names, 'distribution[extra]')"
            )
        kinds = {*KINDS, *(kind for kind, _ in EXTRAS)}
        if hint.kind not in kinds:
            raise InvalidArgument(
                f"icefield_install_hints returned {hint!r}: no '{hint.kind}' is provided by plugins"
                f"{was_meant(hint.kind, kinds)}"
            )
        hints.append(hint)
    return hints


def _is_requirement(given: Any) -> bool:
    """Whether it can be shown in quotes after ``pip install``."""
    return isinstance(given, str) and given[:1].isalnum() and given.isprintable() and not set(given) & set('"$`\\')


def returned_by(plugin: Any, name: str) -> Iterable[Any]:
    """The records that a hook of the plugin returned; empty if the plugin lacks the hook."""
    hook = getattr(plugin, name, None)
    if hook is None or not hasattr(hook, f"{PROJECT}_impl"):
        return ()
    returned: Iterable[Any] = hook() or ()
    if isinstance(returned, str) or not isinstance(returned, Iterable):
        raise InvalidArgument(f"{name} returned one {type(returned).__name__}, not a list of them")
    return returned
