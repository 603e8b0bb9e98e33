"""Plugins, assembled at run time: discovered, isolated from each other, looked up by name.

The set of plugins is a value that is passed on (``Plugins.installed()``), never a global. A plugin that fails to load
is named with its distribution and version, and the rest still work.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

import pluggy

from icefield.abc import CatalogBackend, CommitStrategy, FileFormat, FileSystem, KeyService, TableEncryption
from icefield.base.deprecation import warn_of_implementations
from icefield.base.spelling import was_meant
from icefield.errors import BrokenPlugin, InvalidArgument, InvalidExpression, MissingPlugin, PluginConflict
from icefield.expressions import BooleanExpression, as_expression
from icefield.metadata.properties import Property
from icefield.metadata.property_checks import KnownProperties
from icefield.plugins import hookspecs
from icefield.plugins.extras import EXTRAS
from icefield.plugins.hookspecs import PROJECT, Provider
from icefield.plugins.records import (
    DISABLE,
    EVENTS,
    KINDS,
    PREFER,
    PluginInfo,
    PluginKind,
    check_contract,
    check_hook_names,
    install_hints_of,
    kind_of,
    names_of,
    properties_of,
    providers_of,
    returned_by,
    specified,
)
from icefield.schema import Schema

_LOG = logging.getLogger(__name__)

_Record = TypeVar("_Record")


@dataclass(frozen=True, slots=True)
class _Assembled:
    """The declarations of plugins: by kind and name, the providers and the requirements to install."""

    listing: list[PluginInfo]
    working: list[tuple[PluginInfo, Any]]
    offers: dict[tuple[str, str], list[tuple[PluginInfo, Provider]]]
    disabled: dict[tuple[str, str], PluginInfo]
    requirements: dict[tuple[str, str], list[str]]
    properties: KnownProperties
    manager: pluggy.PluginManager


class Plugins:
    """A set of plugins, and their providers by kind and name.

    ``plugins`` are modules, module names or objects with hook implementations. ``prefer`` settles conflicts:
    ``{"file-systems.gs": "some-distribution"}`` names the plugin, or its distribution, that shall serve that name.
    ``disable`` names plugins, or their distributions, that provide nothing and receive no event.
    """

    def __init__(
        self, plugins: Iterable[Any] = (), prefer: Mapping[str, str] | None = None, disable: Iterable[str] = ()
    ) -> None:
        self._given = tuple(plugins)
        self._from_entry_points = False
        self._prefer = dict(prefer or {})
        self._disable = frozenset(disable)
        self._state: _Assembled | None = None
        self._loaded: dict[tuple[str, str], Any] = {}

    @classmethod
    def installed(
        cls, prefer: Mapping[str, str] | None = None, extra: Iterable[Any] = (), disable: Iterable[str] = ()
    ) -> Plugins:
        """All installed plugins of the entry-point group ``icefield``, and the ``extra`` plugins.

        The environment variable ``ICEFIELD_PLUGINS_DISABLE`` names plugins to disable, separated by commas; ``disable``
        adds to them.
        """
        plugins = cls(extra, prefer, [*disable, *_split(os.environ.get("ICEFIELD_PLUGINS_DISABLE", ""))])
        plugins._from_entry_points = True
        return plugins

    @classmethod
    def configured(cls, properties: Mapping[str, str], extra: Iterable[Any] = ()) -> Plugins:
        """The installed plugins and ``extra``, as the properties of a catalog choose them.

        ``plugins.prefer.<kind>.<name>`` settles a conflict. ``plugins.disable`` names plugins to disable, separated by
        commas.
        """
        prefix = f"{PREFER}."
        prefer = {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}
        return cls.installed(prefer, extra, _split(properties.get(DISABLE, "")))

    def __reduce__(self) -> tuple[Any, ...]:
        given = tuple(plugin.__name__ if isinstance(plugin, ModuleType) else plugin for plugin in self._given)
        return _rebuild, (self._from_entry_points, given, self._prefer, self._disable)

    def __repr__(self) -> str:
        return f"Plugins({', '.join(info.name for info in self.listing())})"

    def listing(self) -> list[PluginInfo]:
        """Every plugin, working or broken, in the order in which it was found."""
        return list(self._assembled.listing)

    @staticmethod
    def kinds() -> tuple[PluginKind, ...]:
        """The kinds of things that providers provide."""
        return tuple(KINDS.values())

    def names(self, kind: str) -> list[str]:
        """The names that are provided of a kind (``file-formats``, ``file-systems``, ...), sorted."""
        return sorted(name for found, name in self._assembled.offers if found == kind)

    def providers(self, kind: str) -> list[Provider]:
        """The providers of a kind, in the order of their names."""
        offers = [
            each for (found, _), given in sorted(self._assembled.offers.items()) if found == kind for each in given
        ]
        return list(dict.fromkeys(provider for _, provider in offers))

    @property
    def table_properties(self) -> KnownProperties:
        """The table properties of the kernel and of these plugins."""
        return self._assembled.properties

    def file_format(self, name: str) -> FileFormat:
        """The file format of that name in a manifest, in any case."""
        made: FileFormat = self._load("file-formats", name.lower())()
        return made

    def file_system(self, scheme: str) -> type[FileSystem]:
        """The class that serves a URI scheme."""
        found: type[FileSystem] = self._load("file-systems", scheme.lower())
        return found

    def commit_strategy(self, name: str) -> type[CommitStrategy]:
        """The commit strategy of that name."""
        found: type[CommitStrategy] = self._load("commit-strategies", name)
        return found

    def catalog(self, name: str) -> type[CatalogBackend]:
        """The catalog backend of that type."""
        found: type[CatalogBackend] = self._load("catalogs", name)
        return found

    def catalog_of_uri(self, uri: str) -> type[CatalogBackend]:
        """The catalog backend for the scheme of a URI; a driver after ``+`` is no part of the scheme."""
        scheme = uri.partition(":")[0].partition("+")[0].lower()
        found: type[CatalogBackend] = self._load("catalog-uris", scheme)
        return found

    def key_service(self, name: str) -> type[KeyService]:
        """The key service of that name."""
        found: type[KeyService] = self._load("key-services", name)
        return found

    def encryption(self) -> type[TableEncryption]:
        """The encryption of tables."""
        found: type[TableEncryption] = self._load("encryptions", "standard")
        return found

    def service(self, kind: str, name: str) -> Callable[[Any], Any] | None:
        """The maker of a service, of the kind ``table-services``, ``transaction-services`` or ``scan-services``.

        None for a name without a provider and without an installation hint. Raises ``MissingPlugin`` for a service that
        can be installed.
        """
        known = self._assembled
        if not any((kind, name) in each for each in (known.offers, known.requirements, known.disabled)):
            return None
        found: Callable[[Any], Any] = self._load(kind, name)
        return found

    def expression_of(self, given: Any, schema: Callable[[], Schema]) -> BooleanExpression:
        """The filter of a table with this schema that a string or another library's expression stands for.

        Raises ``InvalidExpression``, and ``MissingPlugin`` if a distribution translates the library's expressions.
        """
        if isinstance(given, BooleanExpression | str):
            return as_expression(given)
        library = type(given).__module__.partition(".")[0]
        translate: Callable[..., BooleanExpression] | None = self.service("filter-services", library)
        if translate is None:
            raise InvalidExpression(f"a filter is an expression or its string, not {given!r:.200}")
        return translate(given, schema())

    def requirements(self, kind: str, name: str) -> list[str]:
        """The arguments of ``pip install`` for a name of a kind, from the extras and from installation hints."""
        return list(self._assembled.requirements.get((kind, name), ()))

    def records(self, hook: str, record: type[_Record]) -> list[tuple[PluginInfo, _Record]]:
        """The records that plugins return from a hook, in the order of the plugins, each with its plugin.

        For a hook that a plugin specifies. A plugin whose hook fails, or returns other things than records of this
        class, is logged and left out.
        """
        found: list[tuple[PluginInfo, _Record]] = []
        for info, plugin in self._assembled.working:
            try:
                returned = list(returned_by(plugin, hook))
                if wrong := [each for each in returned if not isinstance(each, record)]:
                    raise InvalidArgument(f"{hook} returned {wrong[0]!r}, which is no {record.__name__}")
            except (Exception, SystemExit) as error:
                _LOG.error("the hook %s of plugin %s failed: %s: %s", hook, info, type(error).__name__, error)
                continue
            found.extend((info, each) for each in returned)
        return found

    def chosen(self, hook: str, record: type[_Record], name: str, noun: str) -> tuple[PluginInfo, _Record]:
        """The record of a name that plugins return from a hook, with its plugin. For a hook that a plugin specifies.

        ``noun`` says in errors what the hook provides: ``"authorizer"``. Raises ``MissingPlugin`` with the names that
        there are, and ``PluginConflict`` unless a preference chooses among several plugins.
        """
        given = self.records(hook, record)
        offers = [(info, each) for info, each in given if name in names_of(each)]
        if not offers:
            names = sorted({known for _, each in given for known in names_of(each)})
            raise self._missing(kind_of(hook), name, f"{noun} '{name}'", names)
        return self._preferred(kind_of(hook), name, noun, offers)

    def provided(self, hook: str, name: str, noun: str) -> Any:
        """Import the target of the ``Provider`` that ``chosen`` returns. Raises ``BrokenPlugin``, too."""
        plugin, provider = self.chosen(hook, Provider, name, noun)
        return self.load(plugin, provider.target, f"{noun} '{name}'")

    @staticmethod
    def load(plugin: PluginInfo, target: str, what: str) -> Any:
        """Import ``module:attribute`` for a plugin, which provides it as ``what``: ``"command 'lint'"``.

        Raises ``BrokenPlugin``, with the plugin's name, if it cannot be imported, or the module's ``MissingPlugin``.
        """
        module, _, attribute = target.partition(":")
        try:
            return getattr(import_module(module), attribute)
        except MissingPlugin:
            raise
        except (Exception, SystemExit) as error:
            raise BrokenPlugin(
                f"plugin {plugin} provides {what} but {target} cannot be "
                f"loaded: {type(error).__name__}: {error}; reinstall it or report it to its author",
                plugin=plugin.name,
            ) from error

    def check_preferences(self) -> None:
        """Raise ``InvalidArgument`` for a preference without effect.

        A preference has none if no plugin provides its kind or name, or if the preferred plugin does not provide them.
        """
        if not self._prefer:
            return
        added = specified(self._assembled.manager) - vars(hookspecs).keys()
        hooks = {kind_of(hook): hook for hook in added}
        for key, wanted in self._prefer.items():
            kind, _, name = key.partition(".")
            if kind not in KINDS and kind not in hooks:
                raise _no_preference(key, f"no '{kind}' is provided by plugins", kind, [*KINDS, *hooks])
            offers = self._offers(kind, hooks.get(kind))
            noun = KINDS[kind].noun if kind in KINDS else kind
            if name not in offers:
                raise _no_preference(key, f"no plugin provides {noun} '{name}'", name, offers)
            origins = {each for info in offers[name] for each in (info.name, info.distribution) if each}
            if wanted not in origins:
                why = f"{noun} '{name}' is provided by {', '.join(sorted(origins))}, not by '{wanted}'"
                raise _no_preference(key, why, wanted, sorted(origins))

    def _offers(self, kind: str, hook: str | None) -> dict[str, list[PluginInfo]]:
        """The plugins that provide each name of a kind; ``hook`` is None for a kind of the kernel."""
        if hook is None:
            offers = self._assembled.offers.items()
            return {name: [info for info, _ in given] for (found, name), given in offers if found == kind}
        named: dict[str, list[PluginInfo]] = {}
        for info, record in self.records(hook, object):
            for name in names_of(record):
                named.setdefault(name, []).append(info)
        return named

    def listeners(self) -> list[tuple[PluginInfo, pluggy.HookImpl]]:
        """The implementations of ``icefield_events``, in the order of the plugins, each with its plugin."""
        return self._implementations(EVENTS)

    def _implementations(self, hook: str) -> list[tuple[PluginInfo, pluggy.HookImpl]]:
        found = {id(each.plugin): each for each in getattr(self._assembled.manager.hook, hook).get_hookimpls()}
        return [(info, found[id(plugin)]) for info, plugin in self._assembled.working if id(plugin) in found]

    def html(self, shown: object) -> str | None:
        """An object as HTML, by the first plugin whose ``icefield_html`` returns any; None without one.

        A plugin whose hook fails is logged and left out.
        """
        for info, hook in self._implementations("icefield_html"):
            try:
                html = hook.function(shown)
            except (Exception, SystemExit):
                _LOG.exception("plugin %s failed to draw a %s", info, type(shown).__name__)
            else:
                if isinstance(html, str):
                    return html
        return None

    def _load(self, kind: str, name: str) -> Any:
        """The class of that name, cached, since every request to storage needs a file system."""
        if (kind, name) not in self._loaded:
            self._loaded[kind, name] = self._checked(kind, name)
        return self._loaded[kind, name]

    def _checked(self, kind: str, name: str) -> Any:
        noun = KINDS[kind].noun
        offers = self._assembled.offers.get((kind, name), [])
        if not offers:
            raise self._missing(kind, name, f"{noun} for '{name}'", self.names(kind))
        plugin, provider = self._preferred(kind, name, noun, offers)
        check_contract(plugin, provider, kind, name)
        found = self.load(plugin, provider.target, f"{noun} '{name}'")
        contract = KINDS[kind].contract
        if contract is not None and not (isinstance(found, type) and issubclass(found, contract)):
            raise BrokenPlugin(
                f"plugin {plugin} provides {provider.target} as {noun} '{name}', "
                f"but it is no subclass of icefield.abc.{contract.__name__}",
                plugin=plugin.name,
            )
        if contract is not None:
            warn_of_implementations(found, contract)
        return found

    def _preferred(
        self, kind: str, name: str, noun: str, offers: list[tuple[PluginInfo, _Record]]
    ) -> tuple[PluginInfo, _Record]:
        """The only offer, or the preferred one of several."""
        wanted = self._prefer.get(f"{kind}.{name}")
        chosen = [each for each in offers if wanted is not None and wanted in (each[0].name, each[0].distribution)]
        if len(offers) == 1 or len(chosen) == 1:
            return (chosen or offers)[0]
        raise PluginConflict(
            f"{noun} '{name}' is provided by {' and by '.join(str(info) for info, _ in offers)}; "
            f"set the property {PREFER}.{kind}.{name} to the one to use, or uninstall the other",
            name=name,
        )

    def _missing(self, kind: str, name: str, wanted: str, installed: list[str]) -> MissingPlugin:
        """The error for a name that no plugin provides; ``wanted`` describes it."""
        if (off := self._assembled.disabled.get((kind, name))) is not None:
            return MissingPlugin(
                f"no {wanted}: plugin {off} provides it and is disabled; remove its name "
                f"from the property {DISABLE} or the environment variable ICEFIELD_PLUGINS_DISABLE",
                kind=kind,
                name=name,
            )
        requirements = self._assembled.requirements
        if (kind, name) in requirements:
            advice = " or ".join(f'pip install "{each}"' for each in requirements[kind, name])
        else:
            known = [*installed, *(other for found, other in requirements if found == kind)]
            advice = f"installed are: {', '.join(filter(None, installed)) or 'none'}{was_meant(name, known)}"
        failures = "".join(f"; plugin {info} failed to load: {info.error}" for info in self.listing() if info.error)
        return MissingPlugin(f"no {wanted}; {advice}{failures}", kind=kind, name=name)

    @property
    def _assembled(self) -> _Assembled:
        if self._state is None:
            installed = _entry_points() if self._from_entry_points else ()
            given = tuple(
                (PluginInfo(each), _import(each))
                if isinstance(each, str)
                else (PluginInfo(getattr(each, "__name__", type(each).__name__)), each)
                for each in self._given
            )
            off = self._disable
            self._state = _assemble((*installed, *given), off) if given else _assemble_installed(installed, off)
        return self._state


def _no_preference(key: str, why: str, given: str, known: Iterable[str]) -> InvalidArgument:
    return InvalidArgument(f"the property {PREFER}.{key} has no effect: {why}{was_meant(given, known)}", name=key)


def _rebuild(
    from_entry_points: bool, given: tuple[Any, ...], prefer: dict[str, str], disable: frozenset[str]
) -> Plugins:
    if all(isinstance(each, str) for each in given):
        return _again(_entry_points() if from_entry_points else None, given, tuple(prefer.items()), disable)
    return Plugins.installed(prefer, given, disable) if from_entry_points else Plugins(given, prefer, disable)


@cache
def _again(
    installed: tuple[tuple[PluginInfo, Any], ...] | None,
    given: tuple[str, ...],
    prefer: tuple[tuple[str, str], ...],
    disable: frozenset[str],
) -> Plugins:
    """The plugins that a process receives with every task, assembled once, since plugins have no state."""
    return (
        Plugins(given, dict(prefer), disable) if installed is None else Plugins.installed(dict(prefer), given, disable)
    )


@cache
def _entry_points() -> tuple[tuple[PluginInfo, Any], ...]:
    """The installed plugins. Cached, since the scan reads every distribution's metadata and never changes."""
    found = []
    for point in entry_points(group=PROJECT):
        distribution = point.dist
        name, version = (distribution.name, distribution.version) if distribution else (None, None)
        found.append((PluginInfo(point.name, name, version), _import(point.value)))
    return tuple(found)


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:  # isolated: the others must still load
        return error


@cache
def _assemble_installed(installed: tuple[tuple[PluginInfo, Any], ...], disable: frozenset[str]) -> _Assembled:
    """The assembled installed plugins, as most catalogs use them. Cached: calling every hook takes 2 ms."""
    return _assemble(installed, disable)


def _assemble(candidates: Iterable[tuple[PluginInfo, Any]], disable: frozenset[str]) -> _Assembled:
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(hookspecs)
    candidates = [(info, _with_specifications(manager, plugin)) for info, plugin in candidates]
    listing: list[PluginInfo] = []
    working: list[tuple[PluginInfo, Any]] = []
    offers: dict[tuple[str, str], list[tuple[PluginInfo, Provider]]] = {}
    disabled: dict[tuple[str, str], PluginInfo] = {}
    requirements = {each: [f"icefield[{extra}]"] for each, extra in EXTRAS.items()}
    properties: list[Property] = []
    for info, plugin in candidates:
        try:
            if isinstance(plugin, Exception | SystemExit):
                raise plugin
            check_hook_names(manager, plugin)
            manager.register(plugin, name=f"{info.name} #{len(listing)}")
            provided = [(kind, provider) for kind in KINDS.values() for provider in providers_of(plugin, kind)]
            hints = install_hints_of(plugin)
            declared = list(properties_of(plugin))
        except (Exception, SystemExit) as error:
            listing.append(replace(info, error=f"{type(error).__name__}: {error}"))
            if manager.is_registered(plugin):
                manager.unregister(plugin)
            continue
        names = tuple((kind.name, name) for kind, provider in provided for name in kind.names_of(provider))
        full = replace(
            info,
            provides=names,
            disabled=bool(disable & {info.name, info.distribution}),
            listens=hasattr(plugin, EVENTS),
        )
        listing.append(full)
        if full.disabled:
            manager.unregister(plugin)
            disabled.update(dict.fromkeys(names, full))
            continue
        properties += declared
        working.append((full, plugin))
        for kind, provider in provided:
            for name in kind.names_of(provider):
                offers.setdefault((kind.name, name), []).append((full, provider))
        for hint in hints:
            for name in hint.names:
                known = requirements.setdefault((hint.kind, name), [])
                if hint.requirement not in known:
                    known.append(hint.requirement)
    formats = {name for kind, name in (*offers, *requirements) if kind == "file-formats"}
    return _Assembled(listing, working, offers, disabled, requirements, KnownProperties(formats, properties), manager)


def _with_specifications(manager: pluggy.PluginManager, plugin: Any) -> Any:
    """Add the hook specifications that a plugin brings. Returns the plugin, or the exception that it caused."""
    try:
        for name in returned_by(plugin, "icefield_addhooks"):
            manager.add_hookspecs(import_module(name))
    except (Exception, SystemExit) as error:
        return error
    return plugin


def _split(given: str) -> list[str]:
    """The names in a list that is separated by commas."""
    return [name for part in given.split(",") if (name := part.strip())]
