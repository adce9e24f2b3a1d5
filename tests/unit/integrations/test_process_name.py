"""The processes of threads: a valid name for any id, and another one for another id."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.integrations.process_name import process_name_of_thread
from fdstore.store.keys import check_root

IDS = st.text() | st.from_regex(r"[A-Za-z0-9_ -]{1,60}", fullmatch=True)


@given(IDS)
def test_every_id_of_a_thread_has_a_valid_name(thread: str) -> None:
    assert check_root(process_name_of_thread(thread))


@given(IDS, IDS)
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    assert (process_name_of_thread(one) == process_name_of_thread(other)) == (one == other)


@given(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,47}", fullmatch=True))
def test_a_valid_name_is_its_own(thread: str) -> None:
    assert process_name_of_thread(thread) == thread
