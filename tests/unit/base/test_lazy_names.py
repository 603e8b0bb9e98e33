"""Names of a package are imported when they are first used."""

from __future__ import annotations

import json

import icefield
import pytest
from icefield import lazy_names


def test_a_name_comes_from_its_module_and_the_names_are_listed() -> None:
    attribute, names = lazy_names("some_package", {"json": ("loads", "dumps"), "no_such_module": ("Missing",)})
    assert attribute("dumps") is json.dumps
    assert names() == ["Missing", "dumps", "loads"]


def test_a_module_is_imported_when_one_of_its_names_is_used() -> None:
    attribute, _ = lazy_names("some_package", {"no_such_module": ("Missing",)})
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        attribute("Missing")


def test_an_unknown_name_is_an_error_that_names_the_package() -> None:
    with pytest.raises(AttributeError, match="module 'icefield' has no attribute 'Catalogue'"):
        _ = icefield.Catalogue
