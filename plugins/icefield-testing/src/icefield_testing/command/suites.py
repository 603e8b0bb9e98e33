"""Test classes for the suites of a request, with fixtures that are built from the arguments of the command."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from icefield import Catalog, FileIO, load_catalog, types
from icefield.abc import CatalogBackend, CommitStrategy, FileFormat, FileSystem, KeyService
from icefield.errors import InvalidArgument
from icefield.toolkit import was_meant

import icefield_testing
from icefield_testing.base import Suite
from icefield_testing.command.places import Places, attribute, plugins_with
from icefield_testing.command.request import Request, kind_of, load, strategy_for, suites_of
from icefield_testing.service_faults import LossyProxy, RequestFaults


class _Built:
    """The base of all test classes: the request, the locations of each check, and file IO with the class under test."""

    request: Request

    @pytest.fixture(autouse=True)
    def places(self, tmp_path: Path) -> Places:
        self.given = Places(self.request, tmp_path)
        return self.given

    @pytest.fixture
    def service(self) -> Iterator[RequestFaults | None]:
        if self.given.port is None:
            yield None
            return
        with LossyProxy(self.given.port) as proxy:
            yield proxy

    def _io_of(self, properties: dict[str, str]) -> FileIO:
        return FileIO(plugins_with(self.request, self.given.base)[0], properties)


class _Format(_Built):
    @pytest.fixture
    def file_format(self) -> FileFormat:
        made: FileFormat = load(self.request.target)()
        return made


class _FileSystem(_Built):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        made: FileSystem = load(self.request.target)(self.given.properties)
        return made

    @pytest.fixture
    def root(self) -> str:
        return self.given.location

    def raw_get(self, location: str) -> bytes | None:
        store, path = self.given.raw_path(location)
        return store.cat_file(path) if store.isfile(path) else None

    def raw_put(self, location: str, data: bytes) -> None:
        store, path = self.given.raw_path(location)
        store.pipe_file(path, data)

    def raw_list(self, prefix: str) -> Collection[str]:
        store, path = self.given.raw_path(prefix)
        return [f"{prefix}{found.removeprefix(path)}" for found in store.find(path)]


class _Strategy(_Built):
    @pytest.fixture
    def file_system(self) -> FileSystem:
        return self._io_of(self.given.properties).file_system(self.given.base)

    @pytest.fixture
    def location(self) -> str:
        return self.given.location

    def strategy(self, file_system: FileSystem, location: str) -> CommitStrategy:
        return self._made(file_system, location, self.given.properties)

    def strategy_through(self, service: RequestFaults, file_system: FileSystem, location: str) -> CommitStrategy:
        assert isinstance(service, LossyProxy)
        return self._made(file_system, location, self.given.through(service.port))

    def _made(self, file_system: FileSystem, location: str, properties: dict[str, str]) -> CommitStrategy:
        made: CommitStrategy = load(self.request.target)(("db", location), location, file_system, dict(properties))
        return made


class _StrategyOfKernel(_Strategy):
    """Checks a strategy of the kernel that is safe on the file system under test."""

    def _made(self, file_system: FileSystem, location: str, properties: dict[str, str]) -> CommitStrategy:
        name = strategy_for(file_system)
        assert name is not None
        plugins = plugins_with(self.request, self.given.base)[0]
        return plugins.commit_strategy(name)(("db", location), location, file_system, dict(properties))


class _Backend(_Built):
    def _backend(self, properties: dict[str, str]) -> CatalogBackend:
        given = {"warehouse": self.given.base, **properties}
        made: CatalogBackend = load(self.request.target)("kit", given, self._io_of(given))
        return made


class _Catalog(_Backend):
    @pytest.fixture
    def backend(self) -> CatalogBackend:
        made = self._backend(self.given.properties)
        held = {*made.list_namespaces(()).items} - self.namespaces_of_the_store  # type: ignore[attr-defined]
        if held:
            raise pytest.UsageError(
                f"the catalog is not empty before a check, it has {len(held)} namespaces: put {{fresh}} or {{folder}} "
                "into a property, so that each check has a catalog for itself"
            )
        return made

    def backend_through(self, service: RequestFaults, backend: CatalogBackend) -> CatalogBackend:
        assert isinstance(service, LossyProxy)
        return self._backend(self.given.through(service.port))


class _StrategyOfCatalog(_Backend, _Strategy):
    @pytest.fixture(autouse=True)
    def namespace(self, places: Places) -> None:
        self._backend(self.given.properties).create_namespace(("db",), {})

    def _made(self, file_system: FileSystem, location: str, properties: dict[str, str]) -> CommitStrategy:
        built = self._backend(properties).strategy(("db", location), location)
        return type(built)(built.table, location, file_system, built.properties)


class _Tables(_Built):
    @pytest.fixture
    def catalog(self) -> Iterator[Catalog]:
        plugins, name = plugins_with(self.request, self.given.base)
        found = load(self.request.target)
        properties: dict[str, Any] = {"warehouse": self.given.location, **self.given.properties, "plugins": plugins}
        if issubclass(found, CatalogBackend):
            properties["type"] = name
        else:
            properties["type"] = "directory"
            if issubclass(found, CommitStrategy):
                properties["commit"] = name
            elif issubclass(found, FileSystem):
                properties["commit"] = strategy_for(found(self.given.properties))
        with load_catalog("kit", **properties) as catalog:
            yield catalog


class _BuiltKeyService(_Built):
    @pytest.fixture
    def key_service(self) -> KeyService:
        made: KeyService = load(self.request.target)(self.given.properties)
        return made

    @pytest.fixture
    def service_port(self) -> int | None:
        return self.given.port

    def key_service_at(self, port: int, key_service: KeyService, properties: Mapping[str, str]) -> KeyService:
        name = self.request.service_port
        assert name is not None
        given = {**key_service.properties, name: self.given.through(port)[name], **properties}
        return type(key_service)(given)


class _Listener(_Built):
    @pytest.fixture
    def listener(self) -> Any:
        found = load(self.request.target)
        return found() if isinstance(found, type) else found


_BUILT: dict[tuple[str, str], type[_Built]] = {
    ("file format", "FileFormatSuite"): _Format,
    ("file format", "ManifestFormatSuite"): _Format,
    ("file system", "FileSystemSuite"): _FileSystem,
    ("file system", "CommitStrategySuite"): _StrategyOfKernel,
    ("commit strategy", "CommitStrategySuite"): _Strategy,
    ("catalog", "CatalogSuite"): _Catalog,
    ("catalog", "CommitStrategySuite"): _StrategyOfCatalog,
    ("key service", "KeyServiceSuite"): _BuiltKeyService,
    ("listener", "ListenerSuite"): _Listener,
}


def classes(request: Request) -> dict[str, type]:
    """The test classes of a request by name, for a test module."""
    found = load(request.target)
    kind = kind_of(request.target, found)
    made = {}
    for name in request.suites or suites_of(kind, found, request.properties):
        suite = getattr(icefield_testing, name)
        attributes: dict[str, Any] = {"request": request, "__module__": __name__}
        if kind == "file format" and name == "TableBehaviourSuite":
            attributes["table_properties"] = {"write.format.default": found.name}
        if kind == "listener":
            attributes["properties"] = dict(request.properties)
        for key, value in request.attributes.items():
            if hasattr(suite, key):
                attributes[key] = attribute(key, value, getattr(suite, key), vars(types))
        made[f"Test{name}"] = type(f"Test{name}", (_BUILT.get((kind, name), _Tables), suite), attributes)
    return made


def check_names(request: Request) -> None:
    """Raise ``InvalidArgument`` for a suite or an attribute that the kit does not have."""
    suites = {name: getattr(icefield_testing, name) for name in icefield_testing.__all__ if name.endswith("Suite")}
    del suites[Suite.__name__]
    for name in request.suites:
        if name not in suites:
            raise InvalidArgument(f"the kit has no suite '{name}'{was_meant(name, suites)}; it has {', '.join(suites)}")
    stated = {
        key for suite in suites.values() for base in suite.__mro__ for key in vars(base).get("__annotations__", ())
    }
    known = sorted(key for key in stated if not key.startswith("_"))
    for key in request.attributes:
        if key not in known:
            raise InvalidArgument(
                f"no suite has the attribute '{key}'{was_meant(key, known)}; they have {', '.join(known)}"
            )
