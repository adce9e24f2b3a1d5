"""URIs of contents: every content has one, and whatever else a model writes is a typed error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.store.addresses import Address, parse_uri, uri_of
from fdstore.store.keys import check_root
from fdstore.store.process_names import process_name_of
from fdstore.text.selection import Part, fd_id

KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)


@given(KEYS)
def test_every_name_has_a_uri_that_leads_back_to_it(key: str) -> None:
    try:
        fd = fd_id(f"name:{key}")
    except InvalidArgument:
        return  # a key that ends in a selector names nothing

    assert parse_uri(uri_of("triage.1", fd)) == Address("triage.1", fd)


@pytest.mark.parametrize(
    ("uri", "part"),
    [
        ("fdstore://triage/fd:3?page=2", Part("page", 2, 1)),
        ("fdstore://triage/fd%3A3?lines=10-20", Part("line", 10, 11)),
        ("fdstore://triage/fd:3?chars=1-99", Part("char", 1, 99)),
        ("fdstore://triage/fd:3?", None),
    ],
)
def test_a_part_is_named_in_the_query(uri: str, part: Part | None) -> None:
    assert parse_uri(uri) == Address("triage", "fd:3", part)


@pytest.mark.parametrize(
    "uri",
    [
        *("", "fdstore:", "fdstore://", "fdstore://triage", "fdstore://triage/", "http://triage/fd:1"),
        *("fdstore://../fd:1", "fdstore://Triage/fd:1", "fdstore://tri{age}/fd:1", "fdstore://triage:1/fd:1"),
        *("fdstore://triage/fd:1/../fd:2", "fdstore://triage/fd:0", "fdstore://triage/fd:1%00"),
        *("fdstore://triage/name:%ff", "fdstore://triage/name:%0a", "fdstore://triage/name:" + "x" * 9000),
        *("fdstore://triage/fd:1#L1-9", "fdstore://triage/fd:1%23L1-9", "fdstore://user@triage/fd:1"),
        *("fdstore://triage/fd:1?page=0", "fdstore://triage/fd:1?page=3-2", "fdstore://triage/fd:1?page=-1"),
        *("fdstore://triage/fd:1?page=1&lines=2", "fdstore://triage/fd:1?x=1", "fdstore://triage/fd:1?page="),
        "fdstore://triage/fd:1?chars=1-99999999999999999",
    ],
)
def test_what_names_no_content_is_refused(uri: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_uri(uri)
    assert len(str(caught.value)) < 500


@given(st.text(max_size=80))
def test_no_uri_fails_in_another_way(rest: str) -> None:
    try:
        parse_uri(f"fdstore://{rest}")
    except FDStoreError:
        return


@given(st.text(max_size=80))
def test_every_directory_has_the_name_of_a_process(directory: str) -> None:
    assert check_root(process_name_of(directory))
