"""A host on standard input and output: what it sends is decided and passed on, and so are the answers to it.

Messages that need the store are handled on threads of their own, so that others pass meanwhile; only a few
answers at a time, which bounds the memory to a few messages.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from fdstore.hosts.gateway.acting import Treatment
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.host_programs import HostPrograms
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.lines import MessageWriter, read_lines
from fdstore.hosts.gateway.messages import Message, error_answer, line_break_of
from fdstore.hosts.gateway.own_requests import OwnRequests
from fdstore.hosts.gateway.rewriting import (
    CallOurTool,
    CancelOurTool,
    Expand,
    Forward,
    Incoming,
    OutgoingOne,
    Separate,
)

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import Programs

LOOK_EVERY_S = 0.1
"""The time within which programs end after their host has gone."""

MAX_REWRITES = 4
"""The most answers that are stored at the same time; then the server waits."""


class HostConnection:
    """The connection of one host.

    host_in, host_out   file descriptors
    send                passes a line on to the server
    on_gone             called when the host has closed one of its sides; more than once if both
    programs            with --code: those of its model
    """

    def __init__(
        self,
        descriptors: Descriptors,
        send: Callable[[Buffer], object],
        on_gone: Callable[[], None],
        *,
        host_in: int,
        host_out: int,
        programs: Programs | None = None,
    ) -> None:
        self._treatment = Treatment(descriptors, programs)
        self._send, self._on_gone = send, on_gone
        self._host_in, self._host_out = host_in, MessageWriter(host_out)
        self._calls = OwnRequests[None](send)
        self._programs = None if programs is None else HostPrograms(programs, self._calls, self._say)
        self._rewriter = self._treatment.rewriter(self._treatment.offer)
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._jobs: set[threading.Thread] = set()
        self._rewrites = threading.BoundedSemaphore(MAX_REWRITES)

    def read(self) -> None:
        """Pass on what the host sends, to the end of its input."""
        for line in read_lines(self._host_in, self._to_host):
            self._from_host(Message(line).whole)
        self._on_gone()

    def answer(self, message: Message) -> None:
        """Pass on a message of the server. A long one is looked through on a thread: others follow it."""
        if len(message.whole) > LONG_BYTES:
            self._begin_rewrite(lambda: self._answer_long(message))
        elif not self._calls.take(message):
            self._treatment.look_at(message)
            decision = self._decide(message)
            if isinstance(decision, Forward):
                self._rewrite(message, decision)
            else:
                self._begin_rewrite(lambda: self._rewrite(message, decision))

    def _answer_long(self, message: Message) -> None:
        if not self._calls.take(message):
            self._rewrite(message, self._decide(message))

    def _decide(self, message: Message) -> Incoming:
        with self._lock:
            return self._rewriter.from_server(message)

    def _rewrite(self, message: Message, decision: Incoming) -> None:
        shown = message.whole
        try:
            shown = self._treatment.rewrite(message, decision)
        finally:  # even a defect here must not cost the host its answer
            self._to_host(shown, b"" if line_break_of(shown) else message.end)

    def _begin_rewrite(self, job: Callable[[], None]) -> None:
        """Run a job that may need memory for its message on a thread of its own."""
        self._rewrites.acquire()

        def run() -> None:
            try:
                job()
            finally:
                self._rewrites.release()

        self.begin(run)

    def waits_for_answers(self) -> bool:
        """Return whether the server owes answers to a host that still reads."""
        with self._lock:
            return self._rewriter.owes_answers and self._host_out.has_reader()

    def answer_with_error(self, problem: str) -> None:
        """Answer all requests that the server will not answer any more."""
        with self._lock:
            owed = self._rewriter.unanswered()
        for request in owed:
            self._to_host(error_answer(request.id, problem) + b"\n")

    def _say(self, message: bytes) -> None:
        """Send the host a message of ours."""
        self._to_host(message + b"\n")

    def lose_server(self, problem: str) -> None:
        """Fail the calls of programs: the server answers no more."""
        self._calls.server_ended(problem)

    def begin(self, job: Callable[[], None]) -> None:
        """Run a job on a thread of its own."""

        def run() -> None:
            try:
                job()
            finally:
                with self._lock:
                    self._jobs.discard(threading.current_thread())

        thread = background_thread(run, "job")
        with self._lock:  # whoever sees the job can join it, and it cannot end before it is noted
            thread.start()
            self._jobs.add(thread)

    def finish_jobs(self) -> None:
        """Wait for the jobs that have begun; programs go on as long as the host reads."""
        while self.has_jobs():
            if not self.can_answer():
                self.end_programs()
            self.wait_for_a_job(LOOK_EVERY_S)

    def end_programs(self) -> None:
        """End the programs that run: nobody waits for them."""
        if self._programs is not None:
            self._programs.end()

    def has_jobs(self) -> bool:
        with self._lock:
            return bool(self._jobs)

    def can_answer(self) -> bool:
        """Return whether the host still reads."""
        return self._host_out.has_reader()

    def wait_for_a_job(self, timeout_s: float) -> None:
        """Wait until one of the jobs has ended, at most `timeout_s`."""
        with self._lock:
            job = next(iter(self._jobs), None)
        if job is not None:
            job.join(timeout_s)

    def _from_host(self, line: Buffer) -> None:
        with self._sending:  # a request is sent before anything else is decided, as its cancellation
            with self._lock:
                decision = self._rewriter.to_server(line)
            decided: list[tuple[Buffer, OutgoingOne]]
            if isinstance(decision, Separate):
                lines = [bytes(each.whole) + b"\n" for each in decision.messages]
                decided = list(zip(lines, decision.decisions, strict=True))
            else:
                decided = [(line, decision)]
            for one, what in decided:
                if isinstance(what, Forward):
                    self._send(one)
        for one, what in decided:
            self._treat(one, what)

    def _treat(self, line: Buffer, decision: OutgoingOne) -> None:
        """Begin what a message of the host needs that is not sent as it is."""
        match decision:
            case CallOurTool():
                self._begin_ours(decision)
            case CancelOurTool(key=key):
                if self._programs is not None:
                    self._programs.cancel(key)
            case Expand():
                self.begin(lambda: self._expand(line, decision))

    def _begin_ours(self, call: CallOurTool) -> None:
        """Answer a call of one of our tools, on a thread."""
        program = None if self._programs is None else self._programs.begin(call)

        def run() -> None:
            try:
                answer = self._treatment.answer(call) if program is None else program()
            finally:
                with self._lock:
                    self._rewriter.forget(call.key)
            if answer is not None:
                self._to_host(answer + b"\n")

        self.begin(run)

    def _expand(self, line: Buffer, decision: Expand) -> None:
        request, answer = self._treatment.expand(line, decision)
        key = decision.call.key
        with self._sending:
            with self._lock:
                is_wanted = self._rewriter.release(key)
                if is_wanted and request is None:
                    self._rewriter.forget(key)
            if is_wanted and request is not None:
                self._send(request if request is line else bytes(request) + line_break_of(line))
        if is_wanted and answer is not None:
            self._to_host(answer + b"\n")

    def _to_host(self, *message: Buffer) -> None:
        if not self._host_out.write(*message):
            self._on_gone()


def background_thread(body: Callable[[], None], name: str) -> threading.Thread:
    return threading.Thread(target=body, name=f"fdstore-{name}", daemon=True)
