"""The parsing of ceilings, and their effect on the requested limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from fdstore.errors import InvalidArgument, QuotaExceeded
from fdstore.model.records import TreeLimits
from fdstore.store.trees.ceilings import CEILINGS, Ceilings, parse, parse_value
from fdstore.text.numbers import MAX_INTEGER

OF_TREES = sorted(CEILINGS.keys() & set(TreeLimits.__struct_fields__))


@pytest.mark.parametrize(
    ("name", "given_value", "value"),
    [
        ("tree_bytes", "4GiB", 4 << 30),
        ("tree_bytes", "500MB", 500_000_000),
        ("tree_bytes", "1.1 GiB", 1_181_116_006),
        ("tree_bytes", "4.35gb", 4_350_000_000),
        ("bytes", "17", 17),
        ("bytes", "0", 0),
        ("tree_live", "64", 64),
        ("tree_tokens_per_day", "2.5M", 2_500_000),
        ("tree_model_calls_per_day", "0", 0),
        ("trees", "none", None),
        ("trees", "NONE", None),
        ("bytes", str(MAX_INTEGER), MAX_INTEGER),
    ],
)
def test_a_ceiling_is_a_number_with_an_optional_unit_or_none(
    name: str, given_value: str, value: int | None
) -> None:
    assert parse_value(name, given_value) == value


@pytest.mark.parametrize(
    ("name", "given_value"),
    [
        *(
            ("tree_bytes", bad)
            for bad in ("", "-1", "4 GiB ", "4GiB\n", "4k", "1e9", "0.5", "inf", "4XB", "٤")
        ),
        *(("tree_live", bad) for bad in ("0", "1.5", "4GiB", "4MB", "many", "--1", "9007199254740993")),
        *(("tree_depth", bad) for bad in ("0", "none of it")),
        ("bytes", str(MAX_INTEGER + 1)),
        ("bytes", "9" * 400),
    ],
)
def test_an_invalid_value_is_refused_with_the_valid_forms(name: str, given_value: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"{name}: .*or none$"):
        parse_value(name, given_value)


def test_the_error_for_an_unknown_name_lists_all_names() -> None:
    with pytest.raises(InvalidArgument, match="trees, bytes, export_bytes_per_day, tree_depth"):
        parse_value("tree_height", "1")


def test_ceilings_of_a_newer_version_are_ignored_and_unreadable_values_are_an_error() -> None:
    assert parse([b"tree_height", b"7 m", b"trees", b"5"]) == Ceilings({"trees": 5})

    with pytest.raises(InvalidArgument, match=r"ceiling trees: .*fdstore limits set trees VALUE"):
        parse([b"trees", b"fifty"])


@given(
    asked=st.dictionaries(st.sampled_from(OF_TREES), st.integers(1, 10**6)),
    tops=st.dictionaries(st.sampled_from(sorted(CEILINGS)), st.none() | st.integers(0, 10**6)),
)
def test_the_effective_limit_is_the_lower_of_the_request_and_the_ceiling(
    asked: dict[str, int], tops: dict[str, int | None]
) -> None:
    limits = TreeLimits(**asked)

    held = Ceilings(tops).lower(limits)

    for name in TreeLimits.__struct_fields__:
        top = tops.get(name)
        wanted = getattr(limits, name)
        lower = top if wanted is UNSET else wanted if top is None else min(wanted, top)
        assert getattr(held, name) == (UNSET if lower is None else lower)


def test_an_error_says_whether_a_tree_or_the_store_has_no_room() -> None:
    assert "the limit tree_bytes of this tree is 5" in str(QuotaExceeded("tree_bytes", 5))
    assert "the operator's ceiling bytes of this store is 5" in str(QuotaExceeded("bytes", 5))
