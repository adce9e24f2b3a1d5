"""The breaker of a client with patience, driven without a server and with a clock of the test."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import BusyLoadingError, ResponseError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.errors import (
    FDStoreError,
    StoreFull,
    StoreNotReady,
    StoreReadOnly,
    StoreUnavailable,
    UnknownOutcome,
)
from fdstore.wire.breaker import PAUSES_S, Breaker
from fdstore.wire.operation import Abandon, Batch, Disk, Operation, Receive, Send
from fdstore.wire.redis_errors import translate

READ: Batch = [("GET", "k")]
WRITE: Batch = [("SET", "k", 1)]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("somewhere", clock)


def unanswered(kind: type[Exception] = LostReply) -> FDStoreError:
    cause = kind("no reply in time")
    error = translate(cause, "somewhere")
    error.__cause__ = cause
    return error


def reading() -> Operation[Any]:
    return (yield READ)


def begin(breaker: Breaker, **options: Any) -> Operation[Any]:
    """Return an operation whose request was sent."""
    operation = breaker.guarded(reading(), **options)
    assert next(operation) == READ
    return operation


def fail(operation: Operation[Any], error: FDStoreError | None = None) -> None:
    error = error or unanswered()
    with pytest.raises(type(error)):
        operation.throw(error)


def answer(operation: Operation[Any]) -> None:
    with pytest.raises(StopIteration):
        operation.send([b"v"])


def refusal(breaker: Breaker) -> str:
    """Return the problem with which a call fails that sends nothing."""
    with pytest.raises(StoreUnavailable) as caught:
        next(breaker.guarded(reading()))
    return caught.value.problem


def test_after_a_call_without_an_answer_calls_fail_and_say_since_when_and_until_when(
    breaker: Breaker, clock: Clock
) -> None:
    call = begin(breaker)
    clock.now += 2
    fail(call)
    clock.now += 0.4

    assert refusal(breaker) == "it has not answered for 2.4 s; it is tried again in 0.6 s"


@pytest.mark.parametrize("kind", [LostConnection, LostReply, BusyLoadingError])
def test_no_connection_no_reply_and_a_loading_server_are_no_answer(
    breaker: Breaker, kind: type[Exception]
) -> None:
    fail(begin(breaker), unanswered(kind))

    assert "tried again" in refusal(breaker)


def test_an_error_of_the_store_is_an_answer(breaker: Breaker) -> None:
    fail(begin(breaker), StoreFull("maxmemory is reached"))
    fail(begin(breaker), StoreUnavailable("somewhere", "ERR unknown command"))

    begin(breaker)


def test_a_write_that_may_have_been_executed_opens_it_too(breaker: Breaker) -> None:
    error = UnknownOutcome("'commit'")
    error.__cause__ = LostReply("no reply in time")

    fail(begin(breaker), error)

    assert "tried again" in refusal(breaker)


def test_one_call_probes_and_the_others_still_fail(breaker: Breaker, clock: Clock) -> None:
    fail(begin(breaker))
    clock.now += PAUSES_S[0]

    probe = begin(breaker)

    assert refusal(breaker).endswith("it is being tried now")
    answer(probe)
    answer(begin(breaker))


def test_the_pauses_grow_to_a_limit_and_begin_again_after_a_success(breaker: Breaker, clock: Clock) -> None:
    def pause_after_failure() -> float:
        fail(begin(breaker))
        for tenths in range(1, 1000):
            clock.now += 0.1
            try:
                call = next(operation := breaker.guarded(reading()))
            except StoreUnavailable:
                continue
            assert call == READ
            operation.close()
            return round(tenths / 10)
        raise AssertionError("it is never tried again")

    grown = [pause_after_failure() for _ in range(8)]
    answer(begin(breaker))

    assert grown == [1, 2, 4, 8, 16, 30, 30, 30]
    assert pause_after_failure() == 1


def test_a_cancelled_probe_leaves_its_place_to_another(breaker: Breaker, clock: Clock) -> None:
    fail(begin(breaker))
    clock.now += PAUSES_S[0]

    begin(breaker).close()

    answer(begin(breaker))


def test_calls_under_way_when_an_outage_begins_do_not_lengthen_it(breaker: Breaker, clock: Clock) -> None:
    for call in [begin(breaker) for _ in range(5)]:
        fail(call)

    clock.now += PAUSES_S[0]

    answer(begin(breaker))


def test_each_server_has_outages_of_its_own(breaker: Breaker) -> None:
    fail(begin(breaker, server_of=lambda _: "one"))

    answer(begin(breaker, server_of=lambda _: "two"))
    with pytest.raises(StoreUnavailable):
        next(breaker.guarded(reading(), lambda _: "one"))


def test_an_operation_may_clean_up_after_a_failure_without_waiting_again(breaker: Breaker) -> None:
    problems = []

    def careful() -> Operation[None]:
        try:
            yield READ
        except StoreUnavailable:
            try:
                yield [("DEL", "staged")]
            except StoreUnavailable as error:
                problems.append(error.problem)
            raise

    operation = breaker.guarded(careful())
    next(operation)

    fail(operation)
    assert "tried again" in problems[0]


def test_what_was_sent_is_received_during_an_outage(breaker: Breaker) -> None:
    def pipelined() -> Operation[Any]:
        yield Send(READ, "lane")
        return (yield Receive("lane"))

    operation = breaker.guarded(pipelined())
    assert next(operation) == Send(READ, "lane")
    fail(begin(breaker))

    assert operation.send(None) == Receive("lane")
    answer(operation)
    answer(begin(breaker))


def test_sending_fails_at_once_and_work_without_the_store_goes_on(breaker: Breaker) -> None:
    disk = Disk(lambda: None)

    def importing() -> Operation[str]:
        yield disk
        try:
            yield Send(READ, "lane")
        except StoreUnavailable:
            yield Abandon("lane")
            return "refused"
        return "sent"

    fail(begin(breaker))
    operation = breaker.guarded(importing())

    assert next(operation) == disk
    assert operation.send(None) == Abandon("lane")
    with pytest.raises(StopIteration) as ended:
        operation.send(None)
    assert ended.value.value == "refused"


def test_after_a_fork_a_probe_of_the_parent_holds_nothing_up(breaker: Breaker, clock: Clock) -> None:
    fail(begin(breaker))
    clock.now += PAUSES_S[0]
    probe = begin(breaker)

    breaker.forget()

    answer(begin(breaker))
    probe.close()


def refused(message: str) -> FDStoreError:
    cause = ResponseError(message)
    error = translate(cause, "somewhere")
    error.__cause__ = cause
    return error


def writing() -> Operation[Any]:
    return (yield WRITE)


def begin_write(breaker: Breaker) -> Operation[Any]:
    operation = breaker.guarded(writing())
    assert next(operation) == WRITE
    return operation


def test_a_server_that_takes_no_writes_is_read_and_not_written(breaker: Breaker, clock: Clock) -> None:
    fail(begin_write(breaker), refused("NOREPLICAS Not enough good replicas to write."))

    with pytest.raises(StoreReadOnly, match=r"NOREPLICAS.* tried again in 1\.0 s"):
        next(breaker.guarded(writing()))
    answer(begin(breaker))
    clock.now += PAUSES_S[0]
    probe = begin_write(breaker)
    answer(begin(breaker))
    with pytest.raises(StoreReadOnly, match="being tried now"):
        next(breaker.guarded(writing()))
    answer(probe)
    answer(begin_write(breaker))


def test_a_refused_probe_of_writes_doubles_the_pause(breaker: Breaker, clock: Clock) -> None:
    fail(begin_write(breaker), refused("READONLY You can't write against a read only replica."))
    clock.now += PAUSES_S[0]
    fail(begin_write(breaker), refused("READONLY You can't write against a read only replica."))

    with pytest.raises(StoreReadOnly, match=r"tried again in 2\.0 s"):
        next(breaker.guarded(writing()))


def test_a_server_that_serves_nothing_is_left_alone_and_its_error_stays_the_same(breaker: Breaker) -> None:
    fail(begin(breaker), refused("BUSY Redis is busy running a script."))

    with pytest.raises(StoreNotReady, match=r"busy with a script: .*script kill") as caught:
        next(breaker.guarded(reading()))
    assert "FDSTORE_URL" not in str(caught.value)


@pytest.mark.parametrize("message", ["OOM command not allowed", "MISCONF Errors writing to the AOF file"])
def test_a_full_server_is_asked_every_time(breaker: Breaker, message: str) -> None:
    fail(begin_write(breaker), refused(message))

    answer(begin_write(breaker))
