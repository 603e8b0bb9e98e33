"""Optional libraries, imported when an adapter is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from types import MethodType
from typing import Any

from icefield.errors import MissingPlugin


def library(name: str, needed_by: str, module: str = "", *, own: str = "") -> Any:
    """Import a library, or a module of it, on first use. Raises ``MissingPlugin`` if it is not installed.

    ``own``: the module of this plugin that is imported in its stead, and imports the library itself.
    """
    if find_spec(name) is None:
        raise MissingPlugin(f'{needed_by} needs {name}, which is not installed; pip install "icefield[{name}]"')
    return import_module(own or (f"{name}.{module}" if module else name))


def lazy_polars() -> Any:
    """Polars, for ``scan.lazy``. Raises ``MissingPlugin`` if it is not installed, or is older than 2.0.

    Older versions end a frame at an error in its middle, as if there were no more rows.
    """
    polars = library("polars", "lazy")
    if int(polars.__version__.partition(".")[0]) < 2:
        raise MissingPlugin(
            f'lazy needs polars 2.0 or later, and {polars.__version__} is installed; pip install "icefield[polars]"'
        )
    return polars


def method_of(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A function of a scan or table as a service: the attribute is a method that is bound to the scan or table."""
    return partial(MethodType, function)
