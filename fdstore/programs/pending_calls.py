"""What a run of `run_python` waits for, as stored with its snapshot."""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.elements.kinds import PersonReply


class PersonCall(msgspec.Struct, frozen=True):
    """A call that waits for a person: `tool` with these arguments. `question` is the number of its question,
    which takes an answer until `until`, at most for `seconds`."""

    tool: str
    arguments: dict[str, Any]
    question: int
    until: float
    seconds: float


class PendingCalls(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The waits of a run, as stored with its snapshot: the asks that were begun, the calls of outside
    functions, the process that each other call waits for, the lanes that answer the asks, and the calls that
    wait for a person. `slept_s` is how far its clock was moved by sleeping; `said` is what people have said
    by now, `notes` what the model reads about it."""

    asked: list[int] = []
    outside: list[int] = []
    processes: dict[int, str] = {}
    lanes: list[str] = []
    slept_s: float = 0.0
    people: dict[int, PersonCall] = {}
    said: list[PersonReply] = []
    notes: list[str] = []
