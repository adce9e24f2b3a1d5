"""A growing text and its writer, without a server: what is stored, when, and the effect of errors."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

import pytest

from fdstore.client import StreamWriter
from fdstore.client.write_buffer import ENOUGH_CHARS, GROUP_CHARS
from fdstore.errors import (
    FDStoreError,
    InvalidArgument,
    NotText,
    QuotaExceeded,
    StoreUnavailable,
    StreamClosed,
)
from fdstore.model.records import TreeLimits
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.streams.streams import PIECE_CHARS, StreamAppender
from fdstore.text.growth import GrowingText
from fdstore.wire.operation import Batch, Operation, Receive, Send
from fdstore.wire.scripts import name_of
from tests.script_calls import arguments_of
from tests.waiting import PATIENCE_S, concurrently, stretched, wait_until

T = TypeVar("T")


class FakeRunner:
    """A runner that replies with success, or with the next error queued by the test. `texts` has the pages of
    each append, with pages this large the whole text so far; `scripts` has the names of all scripts."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.errors: list[Any] = []
        self.lock = threading.Lock()

    def run(self, operation: Operation[T]) -> T:
        with self.lock:
            try:
                request: Any = next(operation)
                while True:
                    if isinstance(request, Send):
                        sent = request.batch
                        request = operation.send(None)
                        continue
                    error = self.errors.pop(0) if self.errors else None
                    if isinstance(error, FDStoreError):
                        operation.throw(error)
                    batch = sent if isinstance(request, Receive) else request
                    request = operation.send(self._serve(batch, error))
            except StopIteration as done:
                result: T = done.value
                return result

    def _serve(self, batch: Batch, error: Any) -> list[Any]:
        call = next(command for command in batch if command[0] == "EVALSHA")
        if not error:
            self._note(call, [field for command in batch if command[0] == "HSET" for field in command[2:]])
        answer = error or [b"ok"]
        if len(batch) == 1:
            return [answer]
        done = [answer if command is call else b"OK" for command in batch[1:-1]]
        return [b"OK", *[b"QUEUED"] * len(done), done]

    def _note(self, call: Any, beside: list[Any]) -> None:
        self.scripts.append(name_of(call))
        if name_of(call) == "append":
            given = arguments_of(call)
            if given["chars_now"] > given["chars_before"]:
                pages = given["changes"][max(given["index_values"], 0) :] or beside
                self.texts.append(b"".join(pages[1::2]).decode())


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


def appender_of(lease_s: float = 30.0) -> StreamAppender:
    handle = ProcessHandle(process_keys("fdstore", "t"), TreeLimits())
    growth = GrowingText(1_000_000)
    growth.add("")
    return StreamAppender(handle, "fd:1", "t/1", growth, "me", lease_s)


@pytest.fixture
def out(runner: FakeRunner) -> Iterator[StreamWriter]:
    writer = StreamWriter(runner.run, appender_of())
    yield writer
    runner.errors.clear()
    writer.fail("the test is over")


def test_small_writes_are_buffered_and_stored_together(runner: FakeRunner, out: StreamWriter) -> None:
    for _ in range(100):
        out.write("bit ")
    out.flush()

    assert runner.texts[-1] == "bit " * 100
    assert len(runner.texts) < 20


def test_a_large_write_is_stored_immediately(runner: FakeRunner, out: StreamWriter) -> None:
    out.write("x" * GROUP_CHARS)

    assert runner.texts[-1] == "x" * GROUP_CHARS
    assert len(runner.texts) == GROUP_CHARS / PIECE_CHARS


def test_a_full_buffer_is_flushed_before_its_time(
    runner: FakeRunner, out: StreamWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fdstore.client._sync.writer.MAX_AGE_S", 600.0)

    out.write("a little, and ")
    out.write("x" * ENOUGH_CHARS)

    wait_until(lambda: runner.texts == ["a little, and " + "x" * ENOUGH_CHARS])


def test_writes_during_a_request_are_sent_together_in_the_next(runner: FakeRunner, out: StreamWriter) -> None:
    text = "x" * ENOUGH_CHARS

    with runner.lock:
        out.write(text)
        wait_until(lambda: not out._buffer.chars)
        for _ in range(3):
            out.write(text)
    out.flush()

    assert runner.texts == [text, text * 4]


def test_a_little_text_is_flushed_after_a_while(runner: FakeRunner, out: StreamWriter) -> None:
    out.write("a little")

    wait_until(lambda: runner.texts == ["a little"])


def test_a_long_text_is_stored_in_pieces(runner: FakeRunner, out: StreamWriter) -> None:
    out.write("x" * (2 * PIECE_CHARS + 1))
    out.flush()

    assert runner.scripts.count("append") == 3
    assert runner.texts[-1] == "x" * (2 * PIECE_CHARS + 1)


def test_a_piece_is_prepared_but_not_sent_while_the_previous_one_is_in_flight() -> None:
    appender = appender_of()
    appender.put("x" * PIECE_CHARS + "y" * PIECE_CHARS)

    storing = appender.store()
    sent = next(storing)
    then = storing.send(None)

    assert isinstance(sent, Send)
    assert isinstance(then, Receive)
    assert not appender._waiting
    second = storing.send([b"OK", [[b"ok"]]])
    assert second == appender._ready[0] != sent.batch


def test_a_piece_in_flight_when_storing_failed_is_sent_first(runner: FakeRunner) -> None:
    appender = appender_of()
    appender.put("x" * PIECE_CHARS + "y" * PIECE_CHARS + "z")
    storing = appender.store()
    sent: Any = next(storing)
    storing.send(None)
    with pytest.raises(StoreUnavailable):
        storing.throw(StoreUnavailable("here", "away"))

    assert next(appender.store()) == sent.batch
    runner.run(appender.store())

    assert runner.texts[-1] == "x" * PIECE_CHARS + "y" * PIECE_CHARS + "z"
    assert runner.scripts.count("append") == 3


def test_an_idle_writer_renews_its_lease(runner: FakeRunner) -> None:
    out = StreamWriter(runner.run, appender_of(lease_s=0.15))

    wait_until(lambda: runner.scripts.count("append") >= 3)
    assert runner.texts == []
    out.end()


@pytest.mark.parametrize("text", [None, 1, ["a"]])
def test_only_str_and_bytes_are_accepted(out: StreamWriter, text: Any) -> None:
    with pytest.raises(InvalidArgument, match="a str or bytes is needed"):
        out.write(text)


def test_the_first_piece_decides_whether_a_stream_holds_text_or_bytes(runner: FakeRunner) -> None:
    with StreamWriter(runner.run, appender_of()) as texts, StreamWriter(runner.run, appender_of()) as raw:
        texts.write(b"")
        texts.write("a")
        raw.write("")
        raw.write(bytearray(b"b"))

        with pytest.raises(InvalidArgument, match="fd:1 holds text"):
            texts.write(b"b")
        with pytest.raises(NotText, match="application/octet-stream"):
            raw.write("a")

        texts.write("b")
        raw.write(memoryview(b"c"))

    assert sorted(runner.texts) == ["ab", "bc"]


def test_a_lone_surrogate_is_refused_and_the_writer_stays_usable(
    runner: FakeRunner, out: StreamWriter
) -> None:
    out.write("good ")
    with pytest.raises(InvalidArgument, match=r"U\+D800"):
        out.write("bad \ud800")
    out.write("text")
    out.flush()

    assert runner.texts[-1] == "good text"


@pytest.mark.parametrize("code", [True, 1.0, "1", None, 2**60])
def test_an_invalid_exit_code_is_refused_and_the_stream_stays_open(
    runner: FakeRunner, out: StreamWriter, code: Any
) -> None:
    with pytest.raises(InvalidArgument, match="exit_code"):
        out.end(code)

    out.write("goes on")
    out.flush()
    assert "seal" not in runner.scripts


@pytest.mark.parametrize("reason", ["", "x" * 201, None, 1, "\ud800"])
def test_an_invalid_reason_is_refused(out: StreamWriter, reason: Any) -> None:
    with pytest.raises(InvalidArgument):
        out.fail(reason)


def test_ending_flushes_the_buffer_and_happens_once(runner: FakeRunner, out: StreamWriter) -> None:
    out.write("the last words")

    out.end(1)
    out.end(2)
    out.fail("too late")

    assert runner.texts[-1] == "the last words"
    assert runner.scripts.count("seal") == 1
    with pytest.raises(StreamClosed):
        out.write("more")


def test_a_permanent_error_is_raised_by_every_call(runner: FakeRunner, out: StreamWriter) -> None:
    runner.errors.append([b"quota_exceeded", b"tree_bytes", 100])

    out.write("x")
    with pytest.raises(QuotaExceeded):
        out.flush()
    for call in (lambda: out.write("y"), out.flush, out.end, out.end):
        with pytest.raises(QuotaExceeded, match="100"):
            call()


def test_an_error_of_the_thread_is_raised_by_the_next_call(runner: FakeRunner, out: StreamWriter) -> None:
    runner.errors.append([b"stream_closed", b"fd:1", b"broken"])

    out.write("stored by the thread")

    wait_until(lambda: not runner.errors)
    with pytest.raises(StreamClosed, match="broken"):
        out.flush()


def test_a_transient_error_loses_no_text(runner: FakeRunner, out: StreamWriter) -> None:
    runner.errors.append(StoreUnavailable("here", "away"))

    with pytest.raises(StoreUnavailable):
        out.write("x" * GROUP_CHARS)
    out.write("two")
    out.end()

    assert runner.texts[-1] == "x" * GROUP_CHARS + "two"


def test_an_error_of_the_with_block_takes_precedence_over_one_of_the_store(runner: FakeRunner) -> None:
    def write() -> None:
        with StreamWriter(runner.run, appender_of()):
            runner.errors.append([b"gone"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()


def test_many_threads_may_write(runner: FakeRunner, out: StreamWriter) -> None:
    def write(name: str) -> None:
        for _ in range(2000):
            out.write(f"{name} wrote\n")

    concurrently(*(partial(write, name) for name in "abcd"))
    out.flush()

    lines = runner.texts[-1].split("\n")
    assert sorted(lines) == sorted(["", *(f"{name} wrote" for name in "abcd" for _ in range(2000))])


def test_a_writer_that_is_garbage_collected_warns_and_its_thread_ends(runner: FakeRunner) -> None:
    gc.collect()  # what other tests left has its own warnings
    out = StreamWriter(runner.run, appender_of())
    thread = out._task

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del out
        gc.collect()
        thread.join(PATIENCE_S)

    assert not thread.is_alive()
    assert [str(one.message) for one in told] == ["the stream fd:1 was never ended"]
    assert "seal" not in runner.scripts


def test_an_ended_writer_leaves_no_thread(runner: FakeRunner) -> None:
    start = time.monotonic()

    with StreamWriter(runner.run, appender_of()) as out:
        out.write("x")

    assert not out._task.is_alive()
    assert time.monotonic() - start < stretched(5)
