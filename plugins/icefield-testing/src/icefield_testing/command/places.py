"""The locations and properties of one check, and the plugins that include the class under test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
from icefield import Plugins, Provider, hookimpl
from icefield.abc import FileFormat
from icefield.errors import InvalidArgument

from icefield_testing.command.request import KINDS, Request, kind_of, load

_PORT = re.compile(r"(?:^|(?<=:))\d{2,5}(?=$|[/?])")
_NAME = "kit"
_GIVEN = "Given"
"""The name of the plugin that provides the class under test if no installed plugin does."""


class Places:
    """The properties and locations of one check, in which ``{fresh}`` and ``{folder}`` are replaced."""

    def __init__(self, request: Request, folder: Path) -> None:
        self._request = request
        self._marks = {"{fresh}": f"kit{uuid4().hex[:12]}", "{folder}": str(folder)}
        self.properties = {key: self._filled(value) for key, value in request.properties.items()}
        self.base = self._filled(request.location or folder.as_uri()).rstrip("/")
        self.location = f"{self.base}/{uuid4().hex}"

    def _filled(self, value: str) -> str:
        for mark, given in self._marks.items():
            value = value.replace(mark, given)
        return value

    @property
    def port(self) -> int | None:
        """The port of the service, from the property that the request names."""
        if self._request.service_port is None:
            return None
        found = _PORT.search(self.properties.get(self._request.service_port, ""))
        if found is None:
            raise InvalidArgument(f"the property '{self._request.service_port}' has no port, such as 6379 or host:6379")
        return int(found.group())

    def through(self, port: int) -> dict[str, str]:
        """The properties, with the port of a proxy in place of the service's port."""
        key = self._request.service_port
        return {**self.properties, **({key: _PORT.sub(str(port), self.properties[key])} if key else {})}

    def raw_path(self, location: str) -> tuple[Any, str]:
        """A file system of fsspec, and the path in it of a location of the file system under test."""
        assert self._request.raw is not None
        beyond = location.removeprefix(self.base)
        return fsspec.core.url_to_fs(self._filled(self._request.raw).rstrip("/") + beyond, auto_mkdir=True)  # type: ignore[no-any-return]


def _given(hook: str, provider: Provider) -> object:
    """A plugin with one provider."""
    return type(_GIVEN, (), {hook: hookimpl(lambda self: [provider])})()


def plugins_with(request: Request, base: str) -> tuple[Plugins, str]:
    """The installed plugins and a provider of the class under test, and the name of the class among them."""
    found = load(request.target)
    installed = Plugins.installed()
    kind = KINDS[kind_of(request.target, found)]
    if kind.name == "file-systems":
        name = base.partition(":")[0]
    else:
        name = found.name if issubclass(found, FileFormat) else _NAME
    for provider in installed.providers(kind.name):
        if provider.target == request.target:
            return installed, name if kind.name == "file-systems" else provider.names[0]
    taken = {f"{kind.name}.{name}": _GIVEN} if name in installed.names(kind.name) else {}
    given = _given(kind.hook, Provider(name, request.target, contract=(found.contract, found.contract)))
    return Plugins.installed(taken, [given]), name


def attribute(key: str, value: str, default: Any, known: Mapping[str, Any]) -> Any:
    """The value of an attribute of a suite: a number, a flag, names, pairs or a string, as its default requires.

    ``known`` maps the names in ``unsupported`` to types.
    """
    names = value.split(",")
    if isinstance(default, frozenset):
        return frozenset(tuple(name.split(".")) if key.startswith("namespaces") else name for name in names)
    found: Any = value
    if all("=" in name for name in names):
        found = dict(name.split("=", 1) for name in names)
    elif all(name in known for name in names):
        return tuple(known[name] for name in names)
    elif value in ("True", "False"):
        found = value == "True"
    else:
        for number in (float, int):
            with suppress(ValueError):
                found = number(value)
    if isinstance(default, tuple):
        return tuple(names) if isinstance(found, str) else (found,)
    return found
