"""Names that are too long are cut in the middle, and are still different."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truecast._names import cut_in_the_middle, short_names

NAMES = st.lists(st.text("ab #2…", max_size=12), unique=True)


@pytest.mark.slow("cuts very many names")
@given(st.text(), st.integers(3, 30))
def test_both_ends_are_kept_and_no_more_is_lost_than_must_be(name: str, width: int) -> None:
    said = cut_in_the_middle(name, lambda text: len(text) <= width)
    assert len(said) == min(len(name), width)
    if said != name:
        assert said[: width // 2] == name[: width // 2]
        assert said[width // 2 + 1 :] == name[len(name) - (width - 1) // 2 :]
        assert said[width // 2] == "…"


def test_something_is_left_where_there_is_no_room() -> None:
    assert cut_in_the_middle("airport", lambda text: False) == "a…t"
    assert cut_in_the_middle("ab", lambda text: False) == "ab"
    assert cut_in_the_middle("", lambda text: False) == ""


@given(NAMES, st.integers(8, 12))
def test_names_that_differ_are_said_differently(names: list[str], width: int) -> None:
    said = short_names(names, lambda text: len(text) <= width)
    assert len(said) == len(set(said)) == len(names)
    assert all(len(text) <= width for text in said)


def test_the_same_name_twice_is_numbered() -> None:
    assert short_names(["1", "1", "(none)"], lambda text: True) == ["1", "1 #2", "(none)"]
