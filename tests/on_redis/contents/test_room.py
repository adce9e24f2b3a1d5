"""A tree is asked once whether it has room for many contents, before the first is stored."""

from __future__ import annotations

import pytest

import fdstore
from fdstore.client import Store
from fdstore.errors import QuotaExceeded
from fdstore.store.contents.room import check_room
from tests.round_trips import count_round_trips


@pytest.mark.parametrize(
    ("names", "count", "size_bytes", "error"),
    [
        (["new"], 2, 90, None),
        ([], 3, 0, QuotaExceeded("tree_fds", 3, 1, 3)),
        (["a", "new"], 3, 0, None),
        ([], 1, 91, QuotaExceeded("tree_bytes", 100, 10, 91)),
        (["a"], 1, 100, None),
        (["a"], 1, 101, QuotaExceeded("tree_bytes", 100, 10, 91)),
    ],
)
def test_what_would_pass_a_limit_is_refused_with_the_figures_and_replaced_contents_do_not_count(
    store: Store, names: list[str], count: int, size_bytes: int, error: QuotaExceeded | None
) -> None:
    proc = store.process("small", limits=fdstore.TreeLimits(tree_fds=3, tree_bytes=100))
    proc.put("a", "x" * 10)
    operation = check_room(proc.handle, [f"name:{each}" for each in names], count, size_bytes)

    if error is None:
        store.run(operation)
    else:
        with pytest.raises(QuotaExceeded) as caught:
            store.run(operation)
        assert caught.value.args == error.args
        assert str(error.asked) in str(caught.value)


def test_where_there_is_room_it_takes_one_round_trip(store: Store) -> None:
    proc = store.process("roomy")
    names = [f"name:{number}" for number in range(2000)]

    assert count_round_trips(store, check_room(proc.handle, names, 2000, 1 << 20)) == (None, 1)
