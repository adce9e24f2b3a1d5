"""A function that runs periodically on a thread until it returns False or the block exits."""

from __future__ import annotations

import threading

import pytest

from fdstore.agents.runtime.periodic import run_periodically
from tests.waiting import PATIENCE_S


def test_the_function_runs_periodically_until_the_block_exits() -> None:
    enough = threading.Event()
    looks: list[int] = []

    def look() -> bool:
        looks.append(len(looks))
        if len(looks) == 3:
            enough.set()
        return True

    with run_periodically(0.001, look, "a look"):
        assert enough.wait(PATIENCE_S)
    seen = len(looks)

    assert "a look" not in {thread.name for thread in threading.enumerate()}
    assert len(looks) == seen


def test_a_function_that_returns_false_is_not_called_again() -> None:
    looks: list[int] = []
    may_look = threading.Event()

    def look() -> bool:
        may_look.wait(PATIENCE_S)
        looks.append(len(looks))
        return len(looks) < 3

    with run_periodically(0.001, look, "a look"):
        [thread] = [thread for thread in threading.enumerate() if thread.name == "a look"]
        may_look.set()
        thread.join(PATIENCE_S)

    assert looks == [0, 1, 2]


def test_a_running_call_is_joined_even_if_the_block_raises() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def look() -> bool:
        begun.set()
        may_end.wait(PATIENCE_S)
        ended.set()
        return True

    def work() -> None:
        with run_periodically(0.001, look, "a look"):
            assert begun.wait(PATIENCE_S)
            threading.Timer(0.01, may_end.set).start()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()

    assert ended.is_set()
