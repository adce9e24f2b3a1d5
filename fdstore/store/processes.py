"""Processes: opening, children, forks, ends. How they stand is read in `inspection`.

Two kinds share one record. A client program's process is `open` until it ends. One that workers
run moves through states; the moves are made by the scripts, each checking where it comes from:

    ready -> running -> exited | failed | cancelled
      ^         |  ^
      |         v  | (its last child ended, its wait is over)
      +------ waiting
      +-- running, when its lease ran out or its worker gave it back
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from math import inf

import msgspec

from fdstore import lifecycle
from fdstore.errors import InvalidArgument, QuotaExceeded
from fdstore.lifecycle import ProcessState
from fdstore.records import TreeLimits, Unreadable
from fdstore.store.ceilings import beside, obey
from fdstore.store.ceilings import parse as ceilings_in
from fdstore.store.clock import redis_now, seconds_of
from fdstore.store.collect import collect_tree, due_trees
from fdstore.store.content_info import CEILINGS_EVERY_S, DAY_S, TAKES_NO_WRITES, ProcessHandle
from fdstore.store.decoding import (
    FORMAT,
    PASSED_OVER,
    check_format,
    decoding,
    limits_of,
    show_bytes,
    timestamp,
)
from fdstore.store.inspection import missing
from fdstore.store.keys import ProcessKeys, TreeKeys, check_root, process_keys
from fdstore.store.outcomes import outcome
from fdstore.store.staging import MAX_REASON_CHARS, check_page_size, check_source
from fdstore.text.growth import empty_index
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Command, Operation, new_op
from fdstore.wire.scripts import script, text

NAME_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
LAUNCH_GRACE_S = 5
"""How long a launched root may wait to be claimed by the program that launched it."""

COLLECT_A_FEW = 3
"""Trees past their retention that are looked at whenever a tree is made."""

RELEASE_PIECE = 500
"""Descriptors that an end releases in one step, so that Redis is not held up."""


class Program(msgspec.Struct, frozen=True):
    """What an agent's process is to do: its program's name, and the bundle it is found in (JSON and
    its digest)."""

    name: str
    digest: str
    bundle: str


NO_PROGRAM = Program("", "", "")


class Output(msgspec.Struct, frozen=True):
    """A stream that a child is made with, to write what it says: people read `source` as where it is
    from. The parent holds it."""

    source: str
    page_size: int


def fresh_name(program: str) -> str:
    """A new root name: `<program>-<6 random base32 letters>`."""
    return f"{program[:41]}-{''.join(secrets.choice(NAME_ALPHABET) for _ in range(6))}"


def check_limits(limits: TreeLimits) -> TreeLimits:
    """`limits` as they are stored, if every one is a number that makes sense. Raises `InvalidArgument`."""
    for name in limits.__struct_fields__:
        value = getattr(limits, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if name == "retention_days":
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
                raise InvalidArgument(name, "a number of days is needed, 0 to keep for ever")
        elif not whole or not 1 <= value <= MAX_INTEGER:
            raise InvalidArgument(name, "a whole number, 1 or more, is needed")
    # a float, as whoever reads it back has one: equal limits are equal texts
    return msgspec.structs.replace(limits, retention_days=float(limits.retention_days))


def due_at(limits: TreeLimits, now_s: float) -> str:
    """When a tree used now may be collected, as a score of the `trees` key."""
    return f"{now_s + limits.retention_days * DAY_S:.3f}" if limits.retention_days else "+inf"


def open_process(prefix: str, name: str | None, limits: TreeLimits) -> Operation[ProcessHandle]:
    """What a client asks for by a name: a root, which is made if there is none; a child, which must be
    there; without a name a new root. Raises `NotFound`."""
    if isinstance(name, str) and "." in name:
        return open_child(prefix, name)
    return open_root(prefix, fresh_name("proc") if name is None else name, limits, fresh=name is None)


def open_root(
    prefix: str,
    name: str,
    limits: TreeLimits,
    *,
    fresh: bool = False,
    exact: bool = False,
    program: Program = NO_PROGRAM,
) -> Operation[ProcessHandle]:
    """Opens a root process, or makes it with its tree. With `fresh` it must be a new one: if the name is
    taken it gets other letters, or with `exact` is refused. The limits of one that is made are lowered to the
    operator's ceilings. Raises `InvalidArgument`, `QuotaExceeded` (as many trees as there may be)."""
    limits = check_limits(limits)
    keys = process_keys(prefix, check_root(name))
    if not fresh:
        # an existing one is opened without a write: a Redis that is full can still be read
        there = yield from _existing(keys)
        if there is not None:
            return there
    op = new_op()
    due = due_at(limits, (yield from redis_now()))
    while True:
        tree = keys.tree
        lowered = yield from _enter(tree, due, limits)
        held, asked = msgspec.json.encode(lowered.limits), msgspec.json.encode(limits)
        [reply] = yield [
            script("root")(
                (tree.record, keys.record, tree.answer(op)),
                *("", keys.process, "1" if fresh else "0", held),
                *(program.name, program.digest, program.bundle),
                *("" if asked == held else asked, "1" if lowered.by_memory else "0", FORMAT),
            )
        ]
        if reply[0] == b"taken":
            if exact:
                raise InvalidArgument("name", f"process {name} exists already; choose another name")
            keys = process_keys(prefix, fresh_name(name.rpartition("-")[0] or name))
            op = new_op()
        elif reply[0] == b"collecting":
            yield from collect_tree(tree)
        else:
            break
    how, kept = outcome(reply, keys.process)
    if how == b"created":
        yield from _collect_a_few(keys.tree, due)
    handle = ProcessHandle(keys, limits_of(keys.tree.tree, kept))
    if how == b"created":
        handle.ceilings_due_at = time.monotonic() + CEILINGS_EVERY_S
        if lowered.together:
            yield from obey(keys.tree)
    return handle


class _Lowered(msgspec.Struct, frozen=True):
    """The limits that the ceilings leave; whether those of memory count too, and whether there is a ceiling
    for what all trees hold together."""

    limits: TreeLimits
    by_memory: bool
    together: bool


def _enter(tree: TreeKeys, due_at_s: str, asked: TreeLimits) -> Operation[_Lowered]:
    """Enters a tree in `trees` before it is made, so that nothing is ever stored that collect cannot find;
    what it may have of the limits asked for. Raises `QuotaExceeded`."""
    room_made = False
    while True:
        flat, added, count = yield [
            ("HGETALL", tree.ceilings),
            ("ZADD", tree.trees, "NX", due_at_s, tree.tree),
            ("ZCARD", tree.trees),
        ]
        ceilings = ceilings_in(flat)
        most = ceilings.get("trees")
        if most is None or count <= most:
            by_memory = "tree_bytes" not in ceilings.values
            return _Lowered(ceilings.lower(asked), by_memory, ceilings.get("bytes") is not None)
        if added:
            # whoever makes the same tree now enters it again when it is made
            yield [("ZREM", tree.trees, tree.tree)]
        if room_made:
            raise QuotaExceeded("trees", most)
        yield from _collect_due(tree.prefix)
        room_made = True


def _collect_a_few(made: TreeKeys, due_at_s: str) -> Operation[None]:
    # once more: a collector of an earlier tree of this name may have dropped the entry in between
    yield from _collect_due(made.prefix, ("ZADD", made.trees, "NX", due_at_s, made.tree))


def _collect_due(prefix: str, *first: Command) -> Operation[None]:
    *_, now = yield [*first, ("TIME",)]
    for tree in (yield from due_trees(prefix, seconds_of(now), COLLECT_A_FEW)):
        # a damaged one is named by `fdstore gc` and the workers; it keeps nobody from making another
        with suppress(*PASSED_OVER):
            yield from collect_tree(tree)


def open_child(prefix: str, process: str) -> Operation[ProcessHandle]:
    """An existing process. Raises `NotFound`."""
    keys = process_keys(prefix, process)
    handle = yield from _existing(keys)
    if handle is None:
        raise (yield from missing(keys))
    return handle


def _existing(keys: ProcessKeys) -> Operation[ProcessHandle | None]:
    """The process, if it is there. Its tree is noted as used, if that was last done more than a
    hundredth of its retention ago."""
    state, (limits, used_at, form), now = yield [
        ("HGET", keys.record, "state"),
        ("HMGET", keys.tree.record, "limits", "used_at", "format"),
        ("TIME",),
    ]
    if state is None or limits is None:
        return None
    tree = keys.tree.tree
    check_format(tree, form)
    handle = ProcessHandle(keys, limits_of(tree, limits))
    retention_s = handle.limits.retention_days * DAY_S
    try:
        unused_s = seconds_of(now) - timestamp(used_at or b"")
    except ValueError:
        unused_s = inf  # the texts can be read, and noting their use mends it
    # a program that opens, reads and ends is too short for the clock that long-lived clients keep
    if retention_s and unused_s > retention_s / 100:
        yield from touch(handle)
    return handle


def child(
    handle: ProcessHandle,
    share: list[str] | None,
    *,
    state: ProcessState = "open",
    program: Program = NO_PROGRAM,
    brief: str = "",
    output: Output | None = None,
    call_id: str | None = None,
) -> Operation[ProcessHandle]:
    """A new process below this one that holds the shared descriptors (all of them for None) under
    the same ids. One round trip, no content moved. The `output`'s descriptor is in its record.

    Raises `NotFound`, `SpawnLimit`, `QuotaExceeded`, `Fenced`.
    """
    tree = handle.keys.tree
    answer_key, answer_field = handle.answer_slot(new_op(), call_id)
    made = script("child")(
        (tree.record, handle.keys.record, handle.keys.fds, answer_key),
        *(answer_field, handle.attempt, handle.id, state),
        *(program.name, program.digest, program.bundle, brief),
        *(("", "", "") if output is None else _empty(output)),
        *(handle.highest, handle.highest_child),
        *(["*"] if share is None else ["", *share]),
    )
    [reply] = yield from beside(handle, [made])
    [child_id] = map(text, outcome(reply, handle.id))
    handle.see_child(child_id)
    born = ProcessHandle(ProcessKeys(tree, child_id), handle.limits)
    born.highest, born.ceilings_due_at = handle.highest, handle.ceilings_due_at
    return born


def _empty(output: Output) -> tuple[str, int, str]:
    size = check_page_size(output.page_size)
    return check_source(output.source), size, empty_index(size)


def child_of_call(handle: ProcessHandle, call_id: str) -> Operation[str | None]:
    """The child that an earlier run of a tool call made, if any."""
    [answer] = yield [("HGET", handle.keys.calls, call_id)]
    with decoding(f"the calls of process {handle.id}"):
        return None if answer is None else str(msgspec.json.decode(answer, type=list[str])[1])


def launch(handle: ProcessHandle, brief: str) -> Operation[None]:
    """Makes an open process ready to be run, with what it is told (JSON) as its first journal
    record. Raises `Fenced` when it has ended or runs already."""
    keys = handle.keys
    [reply] = yield [script("launch")((keys.tree.record, keys.record), handle.id, brief, LAUNCH_GRACE_S)]
    outcome(reply, handle.id)


def end(
    handle: ProcessHandle,
    state: ProcessState = "exited",
    *,
    exit_code: int | None = 0,
    reason: str = "",
    release: bool = True,
    answer: str = "",
    answer_fd: str = "",
    broken: str = "",
) -> Operation[tuple[str, ...]]:
    """End the process. Return the ids of the ancestors that are ready now and need a wake-up: those that
    waited for nothing else.

    An agent's text ends with it: EOF with the exit code when it exits. Anything else that the process
    still writes breaks off, with the reason `broken` ("" is `cancelled` or `writer_lost`).

    Ending twice is no error. Raises `Fenced` when a newer attempt runs it, `NotFound`.
    """
    finish = script("finish")(
        (handle.keys.tree.record, handle.keys.record),
        *(handle.id, handle.attempt, state, "" if exit_code is None else exit_code, reason),
        *(RELEASE_PIECE if release else 0, answer, answer_fd),
        broken[:MAX_REASON_CHARS] or (lifecycle.CANCELLED if state == "cancelled" else lifecycle.WRITER_LOST),
    )
    while True:
        [reply] = yield [finish]
        _, *woken = map(text, outcome(reply, handle.id))
        if woken:
            return tuple(woken[0].split())


class Cancellation(msgspec.Struct, frozen=True):
    """The result of a cancellation: the state of the process now, the ancestors that need a wake-up, the
    processes that it ended, and what it passed over because it is damaged."""

    state: str
    woken: tuple[str, ...]
    cancelled: tuple[str, ...]
    unreadable: tuple[Unreadable, ...] = ()


def cancel(prefix: str, process: str, reason: str = lifecycle.KILLED) -> Operation[Cancellation]:
    """Cancels a process with all below it; one that has ended stays as it is, one that is damaged is ended
    if its record can be written at all. Raises `NotFound`."""
    keys = process_keys(prefix, process)
    [reply] = yield [script("cancel")((keys.tree.record, keys.record), process, reason)]
    if reply[0] == b"gone":
        raise (yield from missing(keys))
    state, woken, count, *names = outcome(reply, process)
    said = (show_bytes(each).partition(": ") for each in names[count:])
    return Cancellation(
        show_bytes(state),
        tuple(text(woken).split()),
        tuple(map(show_bytes, names[:count])),
        tuple(Unreadable(what=what, problem=problem) for what, _, problem in said),
    )


def touch(handle: ProcessHandle) -> Operation[None]:
    """Notes that the tree is in use, which puts off its collection; unless Redis takes no writes,
    which is no reason not to read."""
    tree = handle.keys.tree
    with suppress(*TAKES_NO_WRITES):
        [reply] = yield [script("touch")((tree.record,))]
        if reply[0] == b"gone":
            return
        due = due_at(handle.limits, float(reply[1]))
        yield [("ZADD", tree.trees, "XX", due, tree.tree)]
    handle.noted()
