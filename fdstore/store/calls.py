"""What the tool calls of a process came to, so that a call that is made again is not done again.

    fdstore:{triage}:triage:calls   hash   toolu_1          what the script that made something answered
                                           toolu_1/outcome  what the whole call came to (JSON)

The first kind is written in one step with what was made, so nothing is made twice even when a worker
dies in between. The second saves the way there: a repeat does not read files, copy texts or run
somebody's function again, and finds its answer when what it was made of is closed by now.
"""

from __future__ import annotations

from fdstore.store.operation import Operation
from fdstore.store.scripts import outcome, script, text
from fdstore.store.views import Namespace


def earlier(space: Namespace, call: str) -> Operation[str | None]:
    """What this call came to before, if it was kept."""
    [found] = yield [("HGET", space.keys.calls, f"{call}/outcome")]
    return None if found is None else text(found)


def keep(space: Namespace, call: str, made: str) -> Operation[None]:
    """Keeps what a call came to; what was kept first stays. Raises `Fenced`, `NotFound`."""
    keys = space.keys
    [reply] = yield [script("keep")((keys.record, keys.calls), space.attempt, f"{call}/outcome", made)]
    outcome(reply, space.id)
