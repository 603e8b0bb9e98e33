"""Configuration: arguments, environment and ``icefield.toml``, read once and passed down.

A catalog's property is looked for in the arguments of ``load_catalog``, then in the environment as
``ICEFIELD_CATALOG__<NAME>__<PROPERTY>`` (upper case; ``_`` for ``-``, ``__`` for ``.``), then in the table
``[catalog.<name>]`` of the first ``icefield.toml`` found: ``$ICEFIELD_CONFIG``, the working directory, the home
directory. If these give neither ``type`` nor ``uri`` nor ``warehouse``, plugins may know the catalog from the
configuration of another tool (``icefield_configurations``).

A relative ``warehouse`` is resolved against the folder of the configuration file, or else against the working
directory. The ``warehouse`` of a ``ServedCatalog`` is a name that its service knows.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from icefield.abc import CatalogBackend, ServedCatalog
from icefield.base.limits import MAX_CONFIGURATION_BYTES
from icefield.base.spelling import nearest
from icefield.errors import IcefieldError, InvalidArgument
from icefield.metadata.properties import property_string
from icefield.metadata.property_checks import warn_at_caller
from icefield.plugins import Plugins, Provider
from icefield.plugins.records import DISABLE, PREFER

_PREFIX = "ICEFIELD_CATALOG__"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
FILE_NAME = "icefield.toml"

_NAMES: Final = (
    "type",
    "warehouse",
    "commit",
    "location.allowed-schemes",
    "location.allowed-roots",
    "location.owned-only",
    "location.credentials-for",
    "io.threads",
    "io.manifest.cache-enabled",
    "io.manifest.cache-folder",
    "io.manifest.cache-folder-bytes",
    DISABLE,
)
_PREFIXES: Final = ("location.map", PREFER, "table-default", "table-override", "events", "snapshot-property")
_IMPLEMENTATIONS: Final = {"py-catalog-impl": "a class of PyIceberg", "catalog-impl": "a class of Java"}


def catalog_properties(
    name: str,
    given: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    *,
    plugins: Plugins | None = None,
) -> dict[str, str]:
    """The properties of a catalog, all strings; arguments win over the environment, which wins over the file.

    ``plugins`` are the installed plugins by default. Raises ``InvalidArgument`` for a file that is not TOML and for a
    value that is not a scalar.
    """
    environment = os.environ if environment is None else environment
    path, properties = _from_file(name, environment)
    own = _from_environment(name, environment)
    for key, value in given.items():
        if value is not None:
            own[key] = property_string(key, os.fspath(value) if isinstance(value, os.PathLike) else value)
    folder = Path.cwd() if "warehouse" in own else path.absolute().parent
    properties.update(own)
    if not properties.keys() & {"type", "uri", "warehouse"}:
        others = _others(environment, plugins)
        if (read := others.get(name) or others.get(name.lower())) is not None:
            properties, folder = {**read(), **properties}, Path.cwd()
    return _anchored(properties, folder, plugins)


def backend_class(properties: Mapping[str, str], plugins: Plugins) -> type[CatalogBackend] | None:
    """The class of a catalog: by ``type``, else by the scheme of ``uri``, else ``directory`` for a ``warehouse``.

    None if none of the three is given. Raises ``MissingPlugin``.
    """
    if kind := properties.get("type"):
        return plugins.catalog(kind)
    if "uri" in properties:
        return plugins.catalog_of_uri(properties["uri"])
    return plugins.catalog("directory") if "warehouse" in properties else None


def check_names(properties: Mapping[str, str]) -> None:
    """Refuse properties for unsupported catalog implementations, and warn of typos in the kernel's property names.

    Other names are kept: they may belong to a plugin or to another engine. Raises ``InvalidArgument``.
    """
    for name in properties:
        if name in _IMPLEMENTATIONS:
            raise InvalidArgument(
                f"the catalog property '{name}' names {_IMPLEMENTATIONS[name]}, which Icefield does not load; give "
                "type=... instead, such as 'directory', or a catalog that a plugin provides",
                property=name,
            )
        likely = _likely_name(name)
        if likely is not None:
            warn_at_caller(f"the catalog property '{name}' is not known to Icefield; was '{likely}' meant?")


def _likely_name(name: str) -> str | None:
    """The kernel's property name that an unknown name probably misspells."""
    if name in _NAMES or name.startswith(tuple(f"{prefix}." for prefix in _PREFIXES)):
        return None
    for prefix in _PREFIXES:
        parts = name.split(".")
        head, rest = ".".join(parts[: prefix.count(".") + 1]), parts[prefix.count(".") + 1 :]
        if rest and nearest(head, [prefix]) is not None:
            return ".".join([prefix, *rest])
    return nearest(name, _NAMES) if len(name) > 3 else None


def default_catalog_name(environment: Mapping[str, str] | None = None) -> str:
    """The name of the default catalog.

    ``ICEFIELD_DEFAULT_CATALOG``, else ``default-catalog`` of the file, else ``default``.
    """
    environment = os.environ if environment is None else environment
    named = environment.get("ICEFIELD_DEFAULT_CATALOG")
    return named or str(_read_file(environment)[1].get("default-catalog", "default"))


def configured_catalogs(environment: Mapping[str, str] | None = None) -> list[str]:
    """The names of every catalog that the file, the environment or another tool configures, sorted."""
    environment = os.environ if environment is None else environment
    names = set(_others(environment, None)) | set(_read_file(environment)[1].get("catalog", {}))
    names |= {key[len(_PREFIX) :].split("__", 1)[0].lower() for key in environment if key.startswith(_PREFIX)}
    return sorted(names)


def configuration_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """The configuration file: the first that exists.

    Raises ``InvalidArgument`` if ``ICEFIELD_CONFIG`` names a missing file.
    """
    named = (os.environ if environment is None else environment).get("ICEFIELD_CONFIG")
    if named and not Path(named).is_file():
        raise InvalidArgument(f"ICEFIELD_CONFIG names {named}, which is no file")
    places = [Path(named)] if named else [Path.cwd() / FILE_NAME, Path.home() / FILE_NAME]
    return next((path for path in places if path.is_file()), None)


def _others(environment: Mapping[str, str], plugins: Plugins | None) -> dict[str, Callable[[], Mapping[str, str]]]:
    """The catalogs of other tools' configurations; of two tools with one name, the first in alphabetical order wins."""
    found: dict[str, Callable[[], Mapping[str, str]]] = {}
    plugins = plugins or Plugins.configured({})
    records = plugins.records("icefield_configurations", Provider)
    for plugin, each in sorted(records, key=lambda record: record[1].names, reverse=True):
        found |= plugins.load(plugin, each.target, f"configuration '{each.names[0]}'")(environment)
    return found


def _from_environment(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    prefix = f"{_PREFIX}{name.upper().replace('-', '_')}__"
    return {
        key[len(prefix) :].lower().replace("__", ".").replace("_", "-"): value
        for key, value in environment.items()
        if key.upper().startswith(prefix)
    }


def _from_file(name: str, environment: Mapping[str, str]) -> tuple[Path, dict[str, str]]:
    path, document = _read_file(environment)
    catalogs = document.get("catalog", {})
    if not isinstance(catalogs, dict) or not isinstance(catalogs.get(name, {}), dict):
        raise InvalidArgument(f"[catalog.{name}] of {FILE_NAME} is no table of properties")
    return path, dict(_flat("", catalogs.get(name, {})))


def _anchored(properties: dict[str, str], folder: Path, plugins: Plugins | None) -> dict[str, str]:
    """Make a relative ``warehouse`` absolute, below a folder, because tables record absolute locations."""
    warehouse = properties.get("warehouse")
    if not warehouse or warehouse.startswith("/") or _SCHEME.match(warehouse):
        return properties
    try:
        found = backend_class(properties, plugins or Plugins.configured(properties))
    except IcefieldError:  # opening the catalog raises it
        return properties
    if found is not None and issubclass(found, ServedCatalog):  # its ``warehouse`` is a name
        return properties
    return {**properties, "warehouse": os.path.normpath(folder / Path(warehouse).expanduser())}


def _flat(prefix: str, table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Properties of a TOML table; an unquoted dotted key makes nested tables, which are joined again."""
    found: list[tuple[str, str]] = []
    for key, value in table.items():
        if isinstance(value, dict):
            found += _flat(f"{prefix}{key}.", value)
        else:
            found.append((f"{prefix}{key}", property_string(f"{prefix}{key}", value)))
    return found


def _read_file(environment: Mapping[str, str]) -> tuple[Path, dict[str, Any]]:
    path = configuration_file(environment)
    if path is None:
        return Path(FILE_NAME), {}
    with path.open("rb") as file:
        data = file.read(MAX_CONFIGURATION_BYTES + 1)
    if len(data) > MAX_CONFIGURATION_BYTES:
        raise InvalidArgument(
            f"{path} has more than {MAX_CONFIGURATION_BYTES:,} bytes and is no configuration", location=str(path)
        )
    try:
        return path, tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is not valid TOML: {error}", location=str(path)) from error
