"""The public names and their signatures equal the committed listing."""

from __future__ import annotations

import inspect
import re
from difflib import unified_diff
from types import ModuleType

import icefield
import icefield.abc
import icefield.toolkit
import pytest
from public_api import LISTING, listing
from repository import ROOT


def test_the_public_interface_is_the_committed_one() -> None:
    committed = LISTING.read_text("utf-8")
    difference = "\n".join(
        unified_diff(committed.splitlines(), listing().splitlines(), "committed", "now", n=0, lineterm="")
    )
    assert not difference, (
        f"the public interface changed:\n{difference}\n"
        f"if that is meant, run `make reference`, or python tests/support/public_api.py, and commit "
        f"{LISTING.relative_to(ROOT)}"
    )


def test_every_public_name_can_be_had() -> None:
    for module in (icefield, icefield.abc, icefield.toolkit):
        for name in module.__all__:
            assert getattr(module, name) is not None
    assert set(icefield.__all__) <= set(dir(icefield))


def test_the_contracts_hand_on_every_type_of_their_signatures() -> None:
    ours = {*re.findall(r"^class (\w+)", LISTING.read_text("utf-8"), re.MULTILINE)}
    mentions: set[str] = set()
    for name in icefield.abc.__all__:
        contract = getattr(icefield.abc, name)
        if not inspect.isclass(contract) or not contract.__module__.startswith("icefield.abc"):
            continue
        mentioned = [str(each) for each in vars(contract).get("__annotations__", {}).values()]
        for member in vars(contract).values():
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if inspect.isfunction(function) and not function.__name__.startswith("_"):
                mentioned.append(str(inspect.signature(function)))
        mentions |= {word for each in mentioned for word in re.findall(r"[A-Z]\w+", each) if word in ours}
    assert mentions > {"InputFile", "Schema", "TableMetadata"}
    assert mentions - {*icefield.abc.__all__} == set()


@pytest.mark.parametrize("module", [icefield.abc, icefield.toolkit], ids=lambda module: module.__name__)
def test_everything_that_authors_use_is_documented(module: ModuleType) -> None:
    without = []
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            without += [] if inspect.getdoc(value) else [name]
        if not inspect.isclass(value):
            continue
        without += [] if inspect.getdoc(value) else [name]
        for member, found in vars(value).items():
            is_method = inspect.isfunction(found) or isinstance(found, property | classmethod | staticmethod)
            if is_method and not member.startswith("_") and not _documented(value, member):
                without.append(f"{name}.{member}")
    assert without == []


def _documented(kind: type, member: str) -> bool:
    """Whether a member has a docstring of its own, or one of the contract that it fulfils."""
    return any(inspect.getdoc(vars(base)[member]) for base in kind.__mro__ if member in vars(base))
