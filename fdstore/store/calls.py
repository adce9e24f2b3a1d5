"""What the tool calls of a process came to, so that a call that is made again is not done again.

    fdstore:{triage}:triage:calls   hash   toolu_1          what the script that made something answered
                                           toolu_1/outcome  what the whole call came to (JSON)
                                           toolu_1/begun    the run of a tool that must not run twice
                                           toolu_1/plan     the file that is about to be put in place (JSON)
                                           toolu_1/exported how many bytes it wrote to a file (see `exports`)

The first kind is written in one step with what was made, so nothing is made twice even when a worker
dies in between. The second saves the way there: a repeat does not read files, copy texts or run
somebody's function again, and finds its answer when what it was made of is closed by now. The third is
for what the store cannot see the end of: it is written before a function runs, by one attempt alone.
The fourth is for what can be looked at afterwards: with it the next attempt knows what to look for.
"""

from __future__ import annotations

from fdstore.store.decoding import decoding
from fdstore.store.operation import Operation, new_op
from fdstore.store.scripts import outcome, script, text
from fdstore.store.views import Namespace


def earlier(space: Namespace, call: str) -> Operation[str | None]:
    """What this call came to before, if it was kept."""
    [found] = yield [("HGET", space.keys.calls, f"{call}/outcome")]
    return None if found is None else _said_in(space, found)


def keep(space: Namespace, call: str, made: str) -> Operation[None]:
    """Keeps what a call came to; what was kept first stays. Raises `Fenced`, `NotFound`."""
    yield from _say(space, f"{call}/outcome", made)


def begin(space: Namespace, call: str) -> Operation[bool]:
    """Whether this run of a call is the first to begin. Of any number that ask, one is told so, however
    often its request is sent. Raises `Fenced`, `NotFound`."""
    run = new_op()
    return (yield from _say(space, f"{call}/begun", run)) == run


def planned(space: Namespace, call: str) -> Operation[str | None]:
    """What the last attempt at this call was about to do."""
    [found] = yield [("HGET", space.keys.calls, f"{call}/plan")]
    return None if found is None else _said_in(space, found)


def plan(space: Namespace, call: str, before: str | None, what: str) -> Operation[bool]:
    """Notes what this attempt is about to do, in place of the plan `before`. False when another attempt
    has noted its own in between. Raises `Fenced`, `NotFound`."""
    keys = space.keys
    [reply] = yield [
        script("plan")((keys.record, keys.calls), space.attempt, f"{call}/plan", before or "", what)
    ]
    [stands] = outcome(reply, space.id)
    return text(stands) == what


def _said_in(space: Namespace, found: bytes) -> str:
    with decoding(f"the calls of process {space.id}"):
        return text(found)


def _say(space: Namespace, field: str, said: str) -> Operation[str]:
    """Writes a field, unless it is there; what it holds then."""
    [reply] = yield [script("keep")((space.keys.record, space.keys.calls), space.attempt, field, said)]
    [stays] = outcome(reply, space.id)
    return _said_in(space, stays)
