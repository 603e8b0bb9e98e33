"""The hooks of a plugin: they return its providers, services and installation hints, and receive events.

A plugin is an importable module with functions of these names, marked with ``@icefield.hookimpl`` and declared
under the entry-point group ``icefield``. Hooks return light records, such as ``Provider``; the module that a record
names is imported only on first use, so that listing plugins imports no cloud SDK. They are called once, when plugins
are first listed, unless a hook says otherwise. An empty sequence, or None, provides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import pluggy

if TYPE_CHECKING:
    from icefield.abc.events import Event
    from icefield.metadata.properties import Property

PROJECT: Final = "icefield"
"""The name of the pluggy project and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True, init=False)
class Provider:
    """A class that a plugin provides: the names that it serves, and its import path.

    ``names`` may be given as one string. ``target`` is ``"module:attribute"``; it is imported when one of ``names``
    is first asked for. Abilities and requirements are attributes of the class. ``contract`` gives the lowest and the
    highest version of the contract that the class fulfils: ``(2, 3)``. The kernel checks them before it imports the
    class. A provider without ``contract`` is not checked, and fails the conformance kit.

    ``uri_schemes``: for a file system, the schemes of the locations that it serves, by default ``names``. For a
    catalog, the schemes of the property ``uri`` that select it when the property ``type`` is absent, by default none.
    """

    names: tuple[str, ...]
    target: str
    contract: tuple[int, int] | None
    uri_schemes: tuple[str, ...]

    def __init__(
        self,
        names: str | Iterable[str],
        target: str,
        *,
        contract: tuple[int, int] | None = None,
        uri_schemes: str | Iterable[str] = (),
    ) -> None:
        object.__setattr__(self, "names", _strings(names))
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "contract", contract)
        object.__setattr__(self, "uri_schemes", _strings(uri_schemes))


@dataclass(frozen=True, slots=True)
class TableService:
    """A service that a plugin adds to tables, transactions or scans, as an attribute: ``table.maintenance``.

    ``name`` is the attribute. ``target`` is ``"module:attribute"`` of a class or function that takes the ``Table``, the
    transaction or the scan and returns the service; it is imported on the first access to the attribute, and called
    each time.

    ``of="filter"`` makes the expressions of a library filters. ``name`` is then the library's top-level module, and
    ``target`` a function that takes an expression and the schema of a table, and returns a ``BooleanExpression`` that
    selects the same rows, or raises ``InvalidExpression``.
    """

    name: str
    target: str
    of: Literal["table", "transaction", "scan", "filter"] = "table"


@dataclass(frozen=True, slots=True, init=False)
class InstallHint:
    """The requirement to install for names of another distribution: the kind, the names, and pip's requirement.

    ``names`` may be given as one string. ``requirement`` is the argument of ``pip install``: ``"some-plugin[extra]"``.
    """

    kind: str
    names: tuple[str, ...]
    requirement: str

    def __init__(self, kind: str, names: str | Iterable[str], requirement: str) -> None:
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "names", _strings(names))
        object.__setattr__(self, "requirement", requirement)


def _strings(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@hookspec
def icefield_file_formats() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide file formats, subclasses of ``icefield.abc.FileFormat``.

    ``names`` are the spellings of ``file_format`` in a manifest, in lower case (``avro``).
    """


@hookspec
def icefield_file_systems() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide file systems, subclasses of ``icefield.abc.FileSystem``.

    ``uri_schemes`` are the schemes that it serves (``file``).
    """


@hookspec
def icefield_commit_strategies() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide commit strategies for tables on file systems, subclasses of ``icefield.abc.CommitStrategy``.

    ``names`` are the values of the catalog property ``commit`` (``rename``, ``create``).
    """


@hookspec
def icefield_catalogs() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide catalogs, subclasses of ``icefield.abc.CatalogBackend``.

    ``names`` are the values of the catalog property ``type`` (``directory``, ``sql``), and ``uri_schemes`` the schemes
    of ``uri`` that stand for it without ``type``.
    """


@hookspec
def icefield_key_services() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide key services for encrypted tables, subclasses of ``icefield.abc.KeyService``.

    ``names`` are values of the catalog properties ``encryption.kms-type`` (``local``) and ``encryption.kms-impl``
    (the name of the class of Java's client for the same service).
    """


@hookspec
def icefield_encryptions() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide the encryption of tables, a subclass of ``icefield.abc.TableEncryption``, under the name ``standard``."""


@hookspec
def icefield_table_properties() -> Sequence[Property]:  # type: ignore[empty-body]
    """Declare the table properties that this plugin reads, or keeps for other engines.

    A value is checked when it is set, and a name that is close to a declared name gives a warning.
    """


@hookspec
def icefield_table_services() -> Sequence[TableService]:  # type: ignore[empty-body]
    """Provide services of tables, transactions, scans and filters: what these do not have themselves."""


@hookspec
def icefield_addhooks() -> Sequence[str]:  # type: ignore[empty-body]
    """Add hooks of this plugin's own: return the names of modules with hook specifications.

    A specification is a function with a docstring, marked with ``@icefield.hookspec``. Called once, before any other
    hook; the modules are imported then, so they should be light. The plugin that brings a hook calls it with
    ``Plugins.records``. Other plugins implement it with ``@hookimpl(optionalhook=True)``, so that they work without
    the distribution that specifies it.
    """


@hookspec
def icefield_configurations() -> Sequence[Provider]:  # type: ignore[empty-body]
    """Provide the catalogs that the configuration of another tool names.

    Called when Icefield's own configuration gives a catalog neither ``type`` nor ``uri`` nor ``warehouse``, and when
    all catalogs are listed. A target takes the environment, and returns a mapping of the names of catalogs to functions
    that return the properties, as strings. A function raises ``InvalidArgument`` or ``UnsupportedFeature``, by name,
    for a property that cannot be honoured.
    """


@hookspec
def icefield_html(shown: object) -> str | None:
    """Return an object as HTML for notebooks, such as a ``Table``, a ``Schema`` or the result of a write.

    Called when a notebook shows an object. Return None for an object that the plugin does not draw. The HTML is made
    of values in memory: no request, no file that is read. Names and values come from tables and are not trusted, so
    they are escaped. An exception raised here is logged, and the notebook shows the object as text.
    """


@hookspec
def icefield_install_hints() -> Sequence[InstallHint]:  # type: ignore[empty-body]
    """Return installation hints for names that this plugin does not provide itself.

    Called once, when plugins are first listed. ``MissingPlugin`` shows a hint when no plugin provides the name; the
    extras of icefield itself are known. Without hints, return an empty sequence or None.
    """


@hookspec
def icefield_events(event: Event, properties: Mapping[str, str]) -> None:
    """Receive an event: an operation has started, finished or failed, a commit was made, a conflict was met.

    Called in the thread where it happened, with a frozen record of ``icefield.abc``. ``properties`` are the properties
    of the catalog that begin with ``events.<name of the plugin>.``, without this prefix; an implementation may leave
    the argument out. The return value is ignored. An exception raised here, ``SystemExit`` included, is logged with the
    plugin's name and goes no further: a listener can never fail an operation. It is a plain function: a coroutine
    function breaks the plugin. Operations that it makes itself, in this thread, are not told to it.
    """
