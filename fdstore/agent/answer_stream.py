"""An agent's text, as others read it while it is written.

A child that was spawned in the background says what its model says into a stream that its parent
holds: the texts of its answers, with an empty line between them, bit by bit as they come. The stream
ends with the process.

What was said cannot be taken back, and an answer may break off: its connection is lost, its worker is
killed. The next try gives another answer, so the stream then says that it is given anew. Each answer
in the journal remembers how long the stream is with it (`said`). From that a later attempt sees what
the stream lacks of the last answer, or that it holds a part of one that never came to its end:

    stream shorter than `said`     the end of the last answer is added
    as long                        all is there
    longer                         what is more broke off
"""

from __future__ import annotations

import time

from fdstore.agent.conversation import Assistant
from fdstore.errors import QuotaExceeded, StreamClosed
from fdstore.store import streams
from fdstore.store.content_info import ProcessHandle
from fdstore.store.streams import StreamAppender
from fdstore.text.surrogates import SurrogateText
from fdstore.tools.wrapping import storable
from fdstore.wire.operation import Operation

BETWEEN = "\n\n"
BROKE_OFF = f"\n\n[the answer broke off here and is given anew]{BETWEEN}"

PAUSE_S = 0.2
"""How long after one bit the next is stored. Each rewrites a page: stored by the word, some hundred
agents would fill Redis's log with pages, and people read no faster."""


class AnswerStream:
    """Says the answers of one process. Its operations raise `Fenced`, `NotFound`. It falls silent when nobody
    holds the stream any more, and when the quota refuses more of it: the stream is then broken, with that as
    its reason, and the agent goes on."""

    def __init__(self, appender: StreamAppender) -> None:
        self.fd = appender.fd
        self._pen: StreamAppender | None = appender
        self._lead = ""
        self._blank = ""
        self._halves = SurrogateText()
        self._has_begun = False
        self._is_stored = True
        self._store_at = 0.0

    @property
    def chars(self) -> int:
        """How long the stream is with all that was said; 0 when it is not heard."""
        return 0 if self._pen is None else self._pen.chars + len(self._spoken(self._halves.rest))

    def resume(self, last: Assistant | None) -> Operation[None]:
        """Goes on after the last answer in the journal."""
        if self._pen is None:
            return
        said = 0 if last is None else last.said
        lacking = said - self._pen.chars
        if last is not None and lacking > 0:
            # an answer and what stands before it are stored in this order; both leads end alike
            self._pen.put((BROKE_OFF + storable(last.text))[-lacking:])
            self._is_stored = False
        between = "" if last is not None and last.is_paused else BETWEEN
        self._lead = BROKE_OFF if lacking < 0 else between if said else ""
        yield from self._settle()

    def hear(self, text: str) -> Operation[None]:
        """Takes the next bit of an answer, perhaps empty, and stores what there is, now and then."""
        if self._pen is None:
            return
        # a character may come in two halves, each in a bit of its own
        self._say(self._halves.feed(text))
        if not self._is_stored and time.monotonic() >= self._store_at:
            yield from self._settle()
            self._store_at = time.monotonic() + PAUSE_S

    def break_off(self) -> None:
        """The answer in hand is given anew."""
        if self._has_begun:
            self._lead = BROKE_OFF
        self._halves.end()
        self._has_begun, self._blank = False, ""

    def complete(self, *, is_paused: bool = False) -> Operation[None]:
        """The answer in hand is whole, and in the journal; the next one goes on with it if it `is_paused`."""
        if not is_paused:
            self._say(self._halves.end())
        if self._has_begun:
            self._lead = "" if is_paused else BETWEEN
        self._has_begun, self._blank = False, ""
        yield from self._settle()
        self._store_at = 0.0

    def _say(self, text: str) -> None:
        spoken = self._spoken(text)
        if self._pen is not None and spoken:
            self._pen.put(spoken)
            self._has_begun, self._blank, self._is_stored = True, "", False
        elif not self._has_begun:
            self._blank += text  # an answer of blanks is none

    def _spoken(self, text: str) -> str:
        """What a bit of an answer adds to the stream."""
        if self._has_begun:
            return storable(text)
        return self._lead + self._blank + storable(text) if text.strip() else ""

    def _settle(self) -> Operation[None]:
        """Stores what was said."""
        if self._pen is None or self._is_stored:
            return
        try:
            yield from self._pen.store()
            self._is_stored = True
        except (StreamClosed, QuotaExceeded):
            self._pen = None


def open_answer_stream(
    handle: ProcessHandle, outputs: tuple[str, ...], last: Assistant | None
) -> Operation[AnswerStream | None]:
    """The voice of an agent that was made with a stream; None for any other."""
    if not outputs:
        return None
    appender = yield from streams.resume_output(handle, outputs[0])
    if appender is None:
        return None
    voice = AnswerStream(appender)
    yield from voice.resume(last)
    return voice
