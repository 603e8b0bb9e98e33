"""Iceberg's REST Compatibility Kit judges the REST server over the catalog ``sql`` in SQLite."""

from __future__ import annotations

import pytest
from rest_compatibility import GAPS, LEFT, PAGE, judged_by_kit, page
from rest_kit import KitResult


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> KitResult:
    return judged_by_kit(tmp_path_factory.mktemp("kit"))


@pytest.mark.peer
@pytest.mark.slow
def test_every_test_of_the_compatibility_kit_passes_but_for_the_declared_gaps(result: KitResult) -> None:
    assert {name: said for name, said in result.failed.items() if name not in GAPS} == {}
    assert result.failed.keys() == GAPS.keys()
    assert {name: said for name, said in result.skipped.items() if name not in LEFT} == {}
    assert result.skipped.keys() == LEFT.keys()
    assert len(result.passed) >= 144


@pytest.mark.peer
@pytest.mark.slow
def test_the_page_of_the_compatibility_kit_says_what_each_test_found(result: KitResult) -> None:
    assert PAGE.read_text("utf-8") == page(result), "run docs/make_rest_compatibility.py"


def test_what_the_kit_finds_and_nobody_explained_is_on_no_page() -> None:
    with pytest.raises(KeyError, match="unheard"):
        page(KitResult(frozenset(), {}, {"Kit.unheard()": "no"}))
    with pytest.raises(KeyError, match="unheard"):
        page(KitResult(frozenset({"Kit.a()"}), {"Kit.unheard()": "left"}, {}))
