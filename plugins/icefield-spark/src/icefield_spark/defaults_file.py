"""The Iceberg catalogs of ``spark-defaults.conf``, for ``load_catalog`` in a process without Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from icefield.errors import InvalidArgument

from icefield_spark.catalog.java_properties import JAVA, MARK, PREFIX, translated

FILE_NAME: Final = "spark-defaults.conf"
_MOST_BYTES: Final = 1 << 20
_LINE: Final = re.compile(r"((?:[^\\\s=:]|\\.)+)\s*[=:]?\s*(.*)")


def catalogs(environment: Mapping[str, str]) -> dict[str, Callable[[], Mapping[str, str]]]:
    """The catalogs by name, of the file in ``$SPARK_CONF_DIR``, else in ``$SPARK_HOME/conf``."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (home and f"{home}/conf")
    path = Path(folder or ".") / FILE_NAME
    settings = _read(path) if folder and path.is_file() else {}
    ours = {name[len(PREFIX) :]: value for name, value in settings.items() if name.startswith(PREFIX)}
    names = [name for name, value in ours.items() if "." not in name and value in (MARK, *JAVA)]
    return {
        name: partial(
            translated,
            name,
            {key[len(name) + 1 :]: value for key, value in ours.items() if key.startswith(f"{name}.")},
            strict=True,
        )
        for name in names
    }


def _read(path: Path) -> dict[str, str]:
    """The settings of a file in the form of Java's properties."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidArgument(f"{path} has more than {_MOST_BYTES:,} bytes and is no configuration", location=str(path))
    found: dict[str, str] = {}
    lines = re.sub(r"\\\r?\n[ \t]*", "", data.decode("utf-8", errors="replace")).splitlines()
    for line in (each.strip() for each in lines):
        matched = _LINE.fullmatch(line)
        if matched is not None and line[0] not in "#!":
            key, value = (re.sub(r"\\(.)", r"\1", part) for part in matched.groups())
            found[key] = value
    return found
