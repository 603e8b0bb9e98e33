"""The shares of `make test-all`: each test is in one of them, and each file in all."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import shares

_ITEMS = [SimpleNamespace(nodeid=f"tests/test_{file}.py::test[{case}]") for file in range(40) for case in range(file)]


def test_each_test_is_in_exactly_one_share() -> None:
    chosen = [shares.of_share(_ITEMS, number, 3) for number in range(3)]
    assert [sum(of_item) for of_item in zip(*chosen, strict=True)] == [1] * len(_ITEMS)


def test_each_share_has_as_many_tests_of_a_file_as_another_or_one_more() -> None:
    for number in range(3):
        chosen = shares.of_share(_ITEMS, number, 3)
        for file in range(40):
            count = sum(taken for item, taken in zip(_ITEMS, chosen, strict=True) if f"_{file}." in item.nodeid)
            assert file // 3 <= count <= -(-file // 3)


def test_files_of_one_test_are_spread_over_the_shares() -> None:
    single = [item for item in _ITEMS if item.nodeid.endswith("[0]")]
    assert all(sum(shares.of_share(single, number, 3)) >= 5 for number in range(3))


@pytest.mark.parametrize("text", ["3/3", "1", "a/b", "-1/3", "0/0", ""])
def test_a_share_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="0/6"):
        shares.parsed(text)
