"""The stream that a background child's answers are written to while the model generates them.

The stream holds the texts of the child's answers, separated by an empty line, and ends with the process.
Its parent holds it and may follow it.

Text in a stream cannot be withdrawn, and an answer may break off: the connection is lost, or the worker is
killed. The retry produces another answer, so the stream then contains a marker. Each answer in the journal
records the length of the stream after it (`said`). A later attempt compares the two:

    stream shorter than `said`     append the missing end of the last answer
    equal                          the stream is complete
    longer                         the surplus is a part of an answer that broke off
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fdstore.agents.loop.conversation import Assistant
from fdstore.errors import QuotaExceeded, StreamClosed
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.streams import streams
from fdstore.store.streams.streams import StreamAppender
from fdstore.text.surrogates import SurrogateText, escape_surrogates
from fdstore.wire.operation import Operation

RunOperation = Callable[[Operation[Any]], Any]

BETWEEN = "\n\n"
RETRY_MARKER = f"\n\n[the answer broke off here and starts again]{BETWEEN}"

FLUSH_EVERY_S = 0.2
"""Minimum interval between flushes. Each flush rewrites a page: if a few hundred agents flushed every word,
the pages would fill Redis's append-only file, and people read no faster."""


class AnswerStream:
    """Writer of one process's answers to its stream. Its operations raise `Fenced`, `NotFound`.

    When the stream has no holder left it stops writing. When the quota refuses more text, the stream is
    broken with that reason. In both cases the agent continues.
    """

    def __init__(self, appender: StreamAppender) -> None:
        self.fd = appender.fd
        self._appender: StreamAppender | None = appender
        self._separator = ""
        self._blanks = ""
        self._halves = SurrogateText()
        self._has_text = False
        self._is_stored = True
        self._store_at = 0.0

    @property
    def chars(self) -> int:
        """The length of the stream with all buffered text; 0 after writing has stopped."""
        return 0 if self._appender is None else self._appender.chars + len(self._addition(self._halves.rest))

    def resume(self, last: Assistant | None) -> Operation[None]:
        """Continue after `last`, the last answer in the journal."""
        if self._appender is None:
            return
        said = 0 if last is None else last.said
        lacking = said - self._appender.chars
        if last is not None and lacking > 0:
            # the separator is stored before the answer, and both separators end in BETWEEN
            self._appender.put((RETRY_MARKER + escape_surrogates(last.text))[-lacking:])
            self._is_stored = False
        between = "" if last is not None and last.is_paused else BETWEEN
        self._separator = RETRY_MARKER if lacking < 0 else between if said else ""
        yield from self._flush()

    def add(self, text: str) -> Operation[None]:
        """Buffer the next delta of an answer, which may be empty. Flush at most every `FLUSH_EVERY_S`."""
        if self._appender is None:
            return
        # a character may arrive as two surrogates in two deltas
        self._append(self._halves.feed(text))
        if not self._is_stored and time.monotonic() >= self._store_at:
            yield from self._flush()
            self._store_at = time.monotonic() + FLUSH_EVERY_S

    def restart(self) -> None:
        """Note that the current answer broke off and the model is asked again."""
        if self._has_text:
            self._separator = RETRY_MARKER
        self._halves.end()
        self._has_text, self._blanks = False, ""

    def complete(self, *, is_paused: bool = False) -> Operation[None]:
        """Flush the current answer, which is complete and in the journal. If it `is_paused`, the next
        answer continues it without a separator."""
        if not is_paused:
            self._append(self._halves.end())
        if self._has_text:
            self._separator = "" if is_paused else BETWEEN
        self._has_text, self._blanks = False, ""
        yield from self._flush()
        self._store_at = 0.0

    def _append(self, text: str) -> None:
        spoken = self._addition(text)
        if self._appender is not None and spoken:
            self._appender.put(spoken)
            self._has_text, self._blanks, self._is_stored = True, "", False
        elif not self._has_text:
            self._blanks += text  # an answer of whitespace alone is not written

    def _addition(self, text: str) -> str:
        """Return the text that a delta adds to the stream."""
        if self._has_text:
            return escape_surrogates(text)
        return self._separator + self._blanks + escape_surrogates(text) if text.strip() else ""

    def _flush(self) -> Operation[None]:
        """Store the buffered text."""
        if self._appender is None or self._is_stored:
            return
        try:
            yield from self._appender.store()
            self._is_stored = True
        except (StreamClosed, QuotaExceeded):
            self._appender = None


def open_answer_stream(
    handle: ProcessHandle, output: str, last: Assistant | None
) -> Operation[AnswerStream | None]:
    """Return the answer stream of a process created with this output stream, positioned after `last`; None
    if it has ended or no process holds it."""
    appender = yield from streams.resume_output(handle, output)
    if appender is None:
        return None
    answers = AnswerStream(appender)
    yield from answers.resume(last)
    return answers


class StreamListener:
    """Adapter that runs an answer stream's operations as the model's text arrives."""

    def __init__(self, run: RunOperation, answers: AnswerStream) -> None:
        self._run = run
        self._answers = answers

    def on_text(self, text: str) -> None:
        self._run(self._answers.add(text))

    def on_retry(self) -> None:
        self._answers.restart()
