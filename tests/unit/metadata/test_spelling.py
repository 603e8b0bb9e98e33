"""Names that were probably meant by a misspelled one."""

import pytest
from icefield.base.spelling import nearest


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("i", "j", None),
        ("ab", "ac", "ac"),
        ("abcd", "abcx", "abcx"),
        ("abcd", "abxy", None),
        ("abcde", "axyze", None),
        ("abcde", "abcxy", "abcxy"),
        ("abcdef", "abxyzf", None),
        ("ABCDE", "abcde", "abcde"),
    ],
)
def test_a_name_is_near_within_one_edit_and_from_five_letters_on_within_two(name, known, expected):
    assert nearest(name, ["something else", known]) == expected
