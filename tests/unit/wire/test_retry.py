"""Retries after a lost connection: only unanswered commands are sent again, in ever smaller pieces, until the
deadline."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LostConnection

from fdstore.client import Process, Store
from fdstore.errors import StoreFull, StoreNotReady, StoreReadOnly, StoreUnavailable, UnknownOutcome
from fdstore.wire import connection_options, retry
from fdstore.wire.operation import Batch
from fdstore.wire.retry import PAUSES_S, RetryState
from fdstore.wire.scripts import as_eval, as_one_script, hset_if_accepted
from tests.script_calls import script_call

LOST = LostConnection("lost")
READ_ONLY = ReadOnlyError("You can't write against a read only replica.")
READS: Batch = [("HGET", "k", field) for field in "abcde"]
STAGED: Batch = [
    ("MULTI",),
    ("HSET", "pages", 1, "text"),
    ("EXPIRE", "pages", 900),
    ("EXEC",),
    ("HGET", "k", "f"),
]


def broken_batch(batch: Batch, replies: list[Any]) -> RetryState:
    """A batch whose connection broke after these replies."""
    tries = RetryState("somewhere", batch, replies, sent=True, started=time.monotonic())
    tries.after(LOST)
    return tries


def fail_retry(tries: RetryState, *replies: Any) -> None:
    """Make one more try that receives these replies and fails."""
    piece = tries.piece()
    tries.sent = True
    tries.add_replies(piece, list(replies))
    tries.after(LOST)


def test_answered_commands_are_not_sent_again() -> None:
    replies = [b"1", b"2"]
    tries = broken_batch(READS, replies)

    assert tries.piece() == READS[2:]
    tries.add_replies(READS[2:], [b"3", b"4", b"5"])

    assert replies == [b"1", b"2", b"3", b"4", b"5"]
    assert tries.piece() == []


def test_after_a_retry_without_progress_commands_are_sent_one_by_one() -> None:
    replies = [b"1"]
    tries = broken_batch(READS, replies)
    fail_retry(tries)

    for number, command in enumerate(READS[1:], 2):
        assert tries.piece() == [command]
        tries.add_replies([command], [number])

    assert replies == [b"1", 2, 3, 4, 5]


def test_a_failed_connect_does_not_reduce_the_batch_size() -> None:
    tries = broken_batch(READS, [])

    tries.piece()
    tries.after(LOST)

    assert tries.piece() == READS


def test_a_transaction_without_a_reply_is_sent_again_completely() -> None:
    replies = [b"OK", b"QUEUED"]

    tries = broken_batch(STAGED, replies)

    assert replies == []
    assert tries.piece() == STAGED


def test_a_transaction_sent_alone_is_one_command() -> None:
    replies: list[Any] = []
    tries = broken_batch(STAGED, replies)
    fail_retry(tries, b"OK")

    [script] = tries.piece()
    tries.add_replies([script], [[b"ok"]])

    assert script == as_one_script(STAGED[1:3])
    assert replies == [b"OK", b"QUEUED", b"QUEUED", [b"ok"]]
    assert tries.piece() == STAGED[4:]


def test_a_transaction_guarded_by_a_script_is_sent_alone_as_the_script_with_all_texts() -> None:
    tell = script_call("append", changes=["1", "index"])
    batch = hset_if_accepted(script_call("append"), tell, "{t}:pages", "{t}:lent", [1, b"one", 2, b"two"])
    replies: list[Any] = []
    tries = broken_batch(batch, replies)
    fail_retry(tries)

    assert tries.piece() == [as_eval((*tell, 1, b"one", 2, b"two"))]


def test_retries_that_make_progress_do_not_pause() -> None:
    tries = RetryState("somewhere", READS, [], sent=True, started=time.monotonic())

    pauses = [tries.after(LOST), tries.after(LOST)]
    tries.add_replies(tries.piece(), [b"1"])

    assert pauses == list(PAUSES_S[:2])
    assert tries.after(LOST) == 0


@pytest.mark.parametrize(
    ("batch", "replies", "sent", "error"),
    [
        (STAGED, [], True, UnknownOutcome),
        (STAGED, [], False, StoreUnavailable),
        (STAGED, [b"OK", b"QUEUED", b"QUEUED", []], True, StoreUnavailable),
        (READS, [], True, StoreUnavailable),
    ],
)
def test_at_the_deadline_an_unanswered_write_is_in_doubt(
    batch: Batch, replies: list[Any], sent: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", -1.0)

    with pytest.raises(error):
        RetryState("somewhere", batch, replies, sent=sent, started=time.monotonic()).after(LOST)


def test_the_deadline_counts_from_the_first_try_and_bounds_every_wait() -> None:
    before = time.monotonic() - retry.DEADLINE_S
    nearly = RetryState("somewhere", READS, [], sent=True, started=before + 1)
    over = RetryState("somewhere", READS, [], sent=True, started=before - 1)

    assert nearly.after(LOST) == 0
    assert nearly.patience_s() <= 1
    with pytest.raises(StoreUnavailable):
        over.after(LOST)


def test_the_blocking_time_of_a_command_extends_the_deadline() -> None:
    started = time.monotonic() - retry.DEADLINE_S - 1
    tries = RetryState("somewhere", READS, [], sent=True, started=started, block_s=60)

    assert tries.after(LOST) == 0
    assert connection_options.SOCKET_TIMEOUT_S < tries.patience_s() <= 60


REFUSALS = {
    "BUSY": ResponseError("BUSY Redis is busy running a script."),
    "CLUSTERDOWN": ClusterDownError("The cluster is down"),
    "LOADING": BusyLoadingError("Redis is loading the dataset in memory"),
    "MASTERDOWN": MasterDownError("Link with MASTER is down"),
    "MISCONF": ResponseError("MISCONF Errors writing to the AOF file: No space left on device"),
    "NOREPLICAS": ResponseError("NOREPLICAS Not enough good replicas to write."),
    "OOM": OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
    "READONLY": READ_ONLY,
    "TRYAGAIN": TryAgainError("Multiple keys request during rehashing of slot"),
}


@pytest.mark.parametrize("batch", [STAGED, READS])
@pytest.mark.parametrize("code", REFUSALS)
def test_a_refusal_is_waited_for_until_the_deadline_and_leaves_nothing_in_doubt(
    code: str, batch: Batch
) -> None:
    started = time.monotonic()
    tries = RetryState("somewhere", batch, [], sent=True, started=started)
    pauses = []
    for _ in range(4):
        tries.sent = True
        pauses.append(tries.after(REFUSALS[code]))

    assert pauses == list(PAUSES_S[:4])
    assert tries.piece() == batch
    tries = RetryState("somewhere", batch, [], sent=True, started=started - 60)
    with pytest.raises((StoreReadOnly, StoreFull, StoreNotReady)):
        tries.after(REFUSALS[code])


@pytest.mark.parametrize("code", ["BUSY", "NOREPLICAS", "READONLY"])
def test_a_write_that_was_sent_before_a_refusal_stays_in_doubt(code: str) -> None:
    started = time.monotonic()
    tries = RetryState("somewhere", STAGED, [], sent=True, started=started, deadline_s=PAUSES_S[1] / 2)
    tries.after(LOST)

    with pytest.raises(UnknownOutcome):
        tries.after(REFUSALS[code])


def test_a_blocking_command_that_the_server_ends_has_no_reply() -> None:
    replies: list[Any] = []
    block: Batch = [("XREAD", "BLOCK", 5000, "STREAMS", "k", "0")]
    tries = RetryState("somewhere", block, replies, sent=True, started=time.monotonic(), block_s=5)

    assert tries.after(ResponseError("UNBLOCKED client unblocked via CLIENT UNBLOCK")) < 1

    assert (tries.piece(), replies) == ([], [None])


def test_a_blocking_command_of_a_server_that_is_away_has_no_reply() -> None:
    replies: list[Any] = []
    block: Batch = [("XREAD", "BLOCK", 5000, "STREAMS", "k", "0")]
    tries = RetryState("somewhere", block, replies, sent=True, started=time.monotonic(), block_s=5)

    assert (tries.after(LOST), tries.piece()) == (0, block)
    assert tries.after(LOST) < 1

    assert (tries.piece(), replies) == ([], [None])


def test_an_in_doubt_operation_has_the_name_of_its_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "DEADLINE_S", -1.0)
    call = script_call("append")
    batch = hset_if_accepted(call, call, "{t}:pages", "{t}:lent", [1, b"one"])

    with pytest.raises(UnknownOutcome, match="'append'"):
        RetryState("somewhere", batch, [], sent=True, started=time.monotonic()).after(LOST)


def test_the_script_form_has_the_effect_of_the_transaction(runner: Any) -> None:
    fields = [part for number in range(1700) for part in (number, f"page {number}")]

    runner.execute(*as_one_script([("HSET", "{t}:pages", *fields), ("EXPIRE", "{t}:pages", 900)]))

    assert runner.execute("HLEN", "{t}:pages") == 1700
    assert runner.execute("HGET", "{t}:pages", 1699) == b"page 1699"
    assert runner.execute("TTL", "{t}:pages") == 900


def test_a_content_can_be_staged_one_by_one(
    store: Store, runner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve = runner._serve

    def one_by_one(batch: Batch) -> list[Any]:
        replies: list[Any] = []
        tries = broken_batch(batch, replies)
        fail_retry(tries)
        while piece := tries.piece():
            tries.add_replies(piece, serve(piece))
        return replies

    monkeypatch.setattr(runner, "_serve", one_by_one)
    proc: Process = store.process("t")

    made = proc.ingest(io.BytesIO(b"line\n" * 2000), "a file", page_size=7)

    assert (made.fd, made.pages) == ("fd:1", 2000)
    assert proc.read("fd:1", start=1234).text == "line\n"
