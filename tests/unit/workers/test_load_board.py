"""The memory in which a supervisor tells its load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fdstore.store.views.worker_registry import MAX_RUNS, WorkerLoad, decode_load
from fdstore_workers.load_board import SIZE, LoadBoard

loads = st.builds(
    WorkerLoad,
    slots=st.integers(0, 10_000),
    busy=st.integers(0, 10_000),
    lost=st.integers(0, 10_000),
    lost_calls=st.integers(0, 1_000_000),
    since=st.floats(0, 1e10),
    runs=st.lists(st.text("abc.-9", max_size=200), max_size=MAX_RUNS).map(tuple),
)


@given(st.lists(loads, min_size=1, max_size=5))
def test_the_last_load_that_was_written_is_read(written: list[WorkerLoad]) -> None:
    board = LoadBoard()

    for load in written:
        board.write(load)

    assert board.read() == written[-1]


def test_before_the_first_load_there_is_none() -> None:
    assert LoadBoard().read() is None


def test_half_a_write_is_not_read() -> None:
    board = LoadBoard()
    board.write(WorkerLoad(slots=8, busy=1))

    board._shared[10:12] = b"!!"

    assert board.read() is None


def test_a_load_with_the_most_and_longest_names_fits() -> None:
    board = LoadBoard()
    load = WorkerLoad(slots=10_000, busy=10_000, runs=tuple("x" * 200 for _ in range(MAX_RUNS)))

    board.write(load)

    assert board.read() == load
    assert SIZE > 2 * 200 * MAX_RUNS


@given(st.binary(max_size=300))
def test_a_record_of_any_bytes_is_a_load_or_none(value: bytes) -> None:
    found = decode_load(value)

    assert found is None or found.slots >= 0


def test_an_impossible_load_is_none() -> None:
    assert decode_load(b'{"slots": -1, "busy": 0}') is None
    assert decode_load(b'{"slots": 1, "busy": 0, "runs": ["' + b"x" * 201 + b'"]}') is None
    assert decode_load(b'{"slots": 1, "busy": 0, "since": 1e300}') is None
