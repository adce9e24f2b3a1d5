"""One thing that happened in the conversation of a process, as people see it."""

from __future__ import annotations

from typing import Any, Literal

from fdstore.agents.loop.record_facts import Before
from fdstore.elements.facts import NO_FACTS, ResultFacts
from fdstore.model.records import Record, TokenUsage

EntryKind = Literal[
    "task",
    "commands",
    "system",
    "prompt",
    "attempt",
    "loss",
    "outage",
    "retry",
    "thinking",
    "answer",
    "call",
    "result",
    "ask",
    "asks",
    "note",
    "cleared",
    "undeferred",
    "block",
    "unknown",
    "unreadable",
    "end",
]


class ConversationEntry(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a conversation. A record of the journal makes one or more; `position` is that of the
    record, `part` numbers the entries of one record, so both together identify an entry for ever.

        kind        text                              and
        task        the task of the process           process: the one it is a copy of, if any
        commands    the commands of a pipeline
        system      the system prompt
        prompt      the first message to the model    context_window
        attempt     what ended the attempt before     number, worker, losses, before
        loss        how an attempt was lost           number: the attempt, worker, losses: its number
        outage      that the store did not answer     duration_s
        retry       why a try of the model failed     number, duration_s: the pause after it
        thinking    the model's thinking, if shown
        answer      the model's answer; may be ""     number: its turn, usage, stop_reason, duration_s
        call        ""                                tool, arguments, call, pending
        result      the result of a tool call         tool, call, is_error, fds, cleared, duration_s
        ask         the answer, or the error          number, call, arguments: question and parts, is_error,
                                                      pending, duration_s, usage, process: its lane
        asks        how many asks of a call are done  call
        note        a message of fdstore to the model
        cleared     the lines that replace results    calls: those whose results were replaced
        undeferred  why tools are not deferred any more
        block       the type of another block
        unknown     the kind of a newer record
        unreadable  what is wrong with the record
        end         the reason of the end             state, exit_code

    `at` is in seconds since the epoch by the clock of Redis; None for records without a time. `text` is
    cut to a bound; `chars` is the length of the whole. Strings in `arguments` are cut too.

    `call` is the key of a tool call in its conversation. `pending`: it has no result yet. `cleared`: its
    result is now sent as one line; known only if the record that says so is in the same page. `fds` are
    the descriptors that a result is about, and `facts` what the call did with them
    (`inspection.describe_result` puts it in words); a prompt has those of its input, a system prompt those of
    its preloaded texts. `tokens` are those of the text, if they were counted. `is_estimated`: the server of
    the model counted no tokens, so `usage` is an estimate. `context_window` is how many the model takes.
    """

    position: int
    part: int = 0
    kind: EntryKind
    at: float | None = None
    duration_s: float | None = None
    text: str = ""
    chars: int = 0
    tokens: int = 0
    tool: str = ""
    arguments: Any = None
    call: str = ""
    calls: tuple[str, ...] = ()
    is_error: bool = False
    pending: bool = False
    cleared: bool = False
    fds: tuple[str, ...] = ()
    facts: ResultFacts = NO_FACTS
    number: int = 0
    usage: TokenUsage | None = None
    is_estimated: bool = False
    context_window: int | None = None
    stop_reason: str | None = None
    worker: str = ""
    losses: int = 0
    before: Before = ""
    process: str = ""
    state: str = ""
    exit_code: int | None = None

    @property
    def is_cut(self) -> bool:
        """Return whether `text` is only the beginning."""
        return self.chars > len(self.text)
