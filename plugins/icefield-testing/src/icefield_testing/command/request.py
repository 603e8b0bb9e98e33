"""The request of one run of the command: the class, its contract, and its properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from icefield import Plugins
from icefield.abc import FileSystem, ManifestFormat, ServedCatalog
from icefield.abc import FileSystemAbility as Ability
from icefield.errors import InvalidArgument
from icefield.toolkit import VersionedStrategy, was_meant

LISTENER: Final = "listener"
KINDS: Final = {kind.noun: kind for kind in Plugins.kinds() if kind.name != "catalog-uris"}
"""The kinds of things that plugins provide, by the words for each. Catalogs by URI are catalogs."""
CONTRACTS: Final = {noun: kind.contract for noun, kind in KINDS.items() if kind.contract is not None}
"""The contract of each kind that has one."""


@dataclass(frozen=True)
class Request:
    """The arguments of the command. Without ``suites``, all suites that the class must pass are run."""

    target: str
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    raw: str | None = None
    service_port: str | None = None
    suites: tuple[str, ...] = ()
    check: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    kit_version: str | None = None

    def write(self, path: Path) -> None:
        """Write the request for the process that runs the suites."""
        path.write_text(json.dumps(asdict(self)), "utf-8")

    @staticmethod
    def read(path: Path) -> Request:
        """Read a request from a file that ``write`` made."""
        given = json.loads(path.read_text("utf-8"))
        return Request(**{**given, "suites": tuple(given["suites"])})


def load(target: str) -> Any:
    """The class or the module that a target names. Raises ``InvalidArgument`` if there is none."""
    name, _, attribute = target.partition(":")
    try:
        module = import_module(name)
    except ImportError as error:
        raise InvalidArgument(f"the module '{name}' cannot be imported: {error}") from error
    except Exception as error:
        raise InvalidArgument(f"importing '{name}' fails: {type(error).__name__}: {error}") from error
    if not attribute:
        return module
    if not hasattr(module, attribute):
        raise InvalidArgument(f"the module '{name}' has no '{attribute}'{was_meant(attribute, dir(module))}")
    return getattr(module, attribute)


def kind_of(target: str, found: Any) -> str:
    """The contract that an object fulfils, in words. Raises ``InvalidArgument`` if it fulfils none."""
    for kind, contract in CONTRACTS.items():
        if isinstance(found, type) and issubclass(found, contract):
            missing = sorted(getattr(found, "__abstractmethods__", ()))
            if missing:
                raise InvalidArgument(f"{target} lacks methods of its contract: {', '.join(missing)}")
            return kind
    if hasattr(found, "icefield_events"):
        return LISTENER
    contracts = ", ".join(f"icefield.abc.{each.__name__}" for each in CONTRACTS.values())
    raise InvalidArgument(
        f"{target} fulfils no contract: it is no subclass of {contracts}, and no listener, which has a function "
        "icefield_events"
    )


def suites_of(kind: str, found: Any, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the suites that a class must pass, if it is built with these properties."""
    match kind:
        case "file format":
            own = "ManifestFormatSuite" if issubclass(found, ManifestFormat) else "FileFormatSuite"
            return own, "TableBehaviourSuite"
        case "file system":
            if strategy_for(found(dict(properties))) is None:  # no strategy of the kernel is safe on it
                return ("FileSystemSuite",)
            return "FileSystemSuite", "CommitStrategySuite", "TableBehaviourSuite"
        case "commit strategy":
            if not issubclass(found, VersionedStrategy):  # a directory catalog takes no other strategy
                return ("CommitStrategySuite",)
            return "CommitStrategySuite", "TableBehaviourSuite"
        case "catalog":
            if issubclass(found, ServedCatalog):  # its service decides commits, without a strategy to check
                return "CatalogSuite", "TableBehaviourSuite"
            return "CatalogSuite", "CommitStrategySuite", "TableBehaviourSuite"
        case "key service":
            return ("KeyServiceSuite",)
        case "listener":
            return ("ListenerSuite",)
        case _:
            raise InvalidArgument(f"the kit has no suite for this kind: {kind}")


def strategy_for(file_system: FileSystem) -> str | None:
    """The name of a strategy of the kernel that is safe on a file system, or None."""
    named = {"create": Ability.ATOMIC_CREATE, "rename": Ability.ATOMIC_RENAME}
    return next((name for name, ability in named.items() if ability in file_system.abilities), None)
