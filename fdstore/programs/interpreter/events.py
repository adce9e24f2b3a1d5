"""The values that a session returns and takes as answers, its limits and its errors.

The calls, all with positional arguments:

    _fd(ref)                              facts of a descriptor; ref: int or str
    _fds()                                list of facts
    _read(ref, unit, first, last)         str; unit: "pages", "lines", "chars", or "all" with None and None
    _search(ref, pattern, max_matches, ignore_case, context)   list of {"line", "text", "chars", "groups"}
    _split(ref, unit, size)               list of facts; unit: "chars", "lines", "pages"
    _create(text, name)                   facts; name: str or None
    _ask(question, parts)                 str; parts: list of str and {"ref": str}
    _spawn(program, query, refs)          {"answer", "ref", "state", "exit_code"}; ref: facts, str or None
    _pipe(commands, ref)                  {"ref", "exit_code"}; commands: lists of str; ref: str or None
    _sql(query, refs)                     list of dicts, or facts of CSV; refs: by the names of their tables
    _tool(name, args, kwargs)             {"value": any} or {"fd": facts}; a Text in args is its ref, a str
    clock()                               seconds since 1970, a float
    sleep(seconds)                        any value

Facts are a dict of ref, fd, total_chars, total_lines, total_pages, source, kind and state. A program can call
these functions directly, as `_fdstore_read`, with any number of JSON-like arguments: the host checks them.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Limit = Literal["", "seconds", "memory", "output", "calls", "changed", "killed"]

Exceptions = Literal[
    "ValueError",
    "PermissionError",
    "TimeoutError",
    "TypeError",
    "KeyError",
    "RuntimeError",
    "OSError",
    "NameError",
]
"""The exceptions that an answer can raise in the code."""


class HostCall(msgspec.Struct, frozen=True):
    """A host function was called; answer with `resume`."""

    number: int
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}


class Waiting(msgspec.Struct, frozen=True):
    """Every task awaits calls that were answered `LATER`; answer some or all of them with `settle`."""

    numbers: tuple[int, ...]


class Finished(msgspec.Struct, frozen=True):
    """The code has ended. `value` is the repr of its last expression; None if that is None or absent."""

    value: str | None


class Failed(msgspec.Struct, frozen=True):
    """The code raised an exception, or was ended.

    text           traceback of the program's own lines, the error, and what to do about it
    keeps_session  False: the session is over, and the state before the call holds
    limit          the limit that ended it; "changed": a repeat read another text than the first run;
                   "killed" after `kill`; "" for an exception or a crash
    """

    text: str
    keeps_session: bool
    limit: Limit = ""

    @property
    def is_crash(self) -> bool:
        """Return whether the interpreter process ended by itself, or was killed from outside."""
        return not self.keeps_session and not self.limit


Event = HostCall | Waiting | Finished | Failed


class Raise(msgspec.Struct, frozen=True):
    """An answer that is an exception in the code."""

    type: Exceptions
    text: str


class Later:
    """The type of `LATER`."""

    def __repr__(self) -> str:
        return "LATER"


LATER: Final = Later()
"""The answer to a call whose result comes with `settle`."""

Answer = Any
"""None, bool, int, float, str, list, tuple or dict, or a `Raise`."""


class InterpreterEnded(Exception):
    """The interpreter process has ended by itself, or was killed from outside."""


class UnreadableState(Exception):
    """A state or a snapshot is of another version of the interpreter, or needs more memory than there is."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class DamagedState(Exception):
    """The bytes of a state or a snapshot are not what a session of this version has written."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class StateTooLarge(Exception):
    """The interpreter has too little memory to dump its variables. The session is over.

    `largest` has the names of the largest variables and about how many bytes each takes; it is empty in a
    `Waiting`.
    """

    def __init__(self, largest: list[tuple[str, int]]) -> None:
        super().__init__(largest)
        self.largest = largest
