"""The catalogs of ``.pyiceberg.yaml`` and of the environment, as PyIceberg finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml
from icefield.errors import InvalidArgument

from icefield_pyiceberg.translation import translated

FILE_NAME: Final = ".pyiceberg.yaml"
_PREFIX: Final = "pyiceberg_"
_MOST_BYTES: Final = 1 << 20

Tree = dict[str, Any]


def catalogs(environment: Mapping[str, str]) -> dict[str, Callable[[], Mapping[str, str]]]:
    """The catalogs by name, in lower case. Raises ``InvalidArgument`` for a file that PyIceberg does not read either.

    The file is the first of ``$PYICEBERG_HOME``, the home directory and the working directory. The environment goes
    before it.
    """
    path, settings = _from_file(environment)
    _add_environment(settings, environment)
    found = settings.get("catalog") or {}
    if not isinstance(found, dict):
        raise InvalidArgument(f"'catalog' of {path or 'PYICEBERG_CATALOG'} holds no catalogs by name")
    return {name: partial(translated, name, tree, settings) for name, tree in found.items()}


def _from_file(environment: Mapping[str, str]) -> tuple[Path | None, Tree]:
    folders = [environment.get("PYICEBERG_HOME"), Path.home(), Path.cwd()]
    for path in (Path(folder) / FILE_NAME for folder in folders if folder):
        if path.is_file() and (settings := _read(path)):
            return path, settings
    return None, {}


class _StringLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads every scalar as a string, as PyIceberg does, and refuses aliases, which can grow without bounds."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 -- of the library

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _read(path: Path) -> Tree:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidArgument(f"{path} has more than {_MOST_BYTES:,} bytes and is no configuration", location=str(path))
    try:
        found = yaml.load(data, _StringLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        # The text of the error quotes lines, which may hold a credential.
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        raise InvalidArgument(f"{path} is not valid YAML{place}", location=str(path)) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InvalidArgument(f"{path} holds no settings by name", location=str(path))
    return _in_lower_case(found)


def _in_lower_case(tree: Mapping[Any, Any]) -> Tree:
    return {
        str(key).lower(): _in_lower_case(value) if isinstance(value, dict) else value for key, value in tree.items()
    }


def _add_environment(settings: Tree, environment: Mapping[str, str]) -> None:
    """Add ``PYICEBERG_CATALOG__<NAME>__<PROPERTY>``: ``__`` for a dot and ``_`` for a hyphen."""
    for variable, value in environment.items():
        if not variable.lower().startswith(_PREFIX):
            continue
        parts = variable.lower()[len(_PREFIX) :].split("__", maxsplit=2)
        *above, last = [part.replace("__", ".").replace("_", "-") for part in parts]
        place = settings
        for name in above:
            inner = place.setdefault(name, {})
            if not isinstance(inner, dict):
                raise InvalidArgument(f"{variable} and {FILE_NAME} contradict one another about '{name}'")
            place = inner
        if last == "home" and not above:
            continue
        place[last] = value
