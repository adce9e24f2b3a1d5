"""The page of errors: every class of `fdstore.errors`, with its text for sample arguments."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from fdstore import errors
from fdstore.errors import FDStoreError
from reference import markdown

INTRODUCTION = """
All errors are subclasses of `fdstore.FDStoreError`; the classes are in `fdstore.errors`. Each has a `type`,
a word that does not change: models see it in [`fd_error`](elements.md#fd_error), `--json` prints it, logs
name it. Classes of one type are one kind of failure. The text says what is so and what to do. The arguments
of the class are also attributes of the error, and its `args`, so errors survive pickling. Servers and
pipelines have a few more classes, with types of this page.
"""

SAMPLES: Mapping[type[FDStoreError], tuple[object, ...]] = {
    errors.NotFound: ("fd:9", ("fd:1", "fd:2")),
    errors.InvalidArgument: ("count", "must be at least 1"),
    errors.NotAllowed: ("the function tools:search", "--allow-python 'tools:search'"),
    errors.UnknownOutcome: ("the write to fd:3",),
    errors.MissingExtra: ("duckdb", "pip install '.[sql]'"),
    errors.PageOutOfRange: ("fd:1", 9, 3),
    errors.PositionOutOfRange: ("fd:1", "line", 900, 120),
    errors.NotEncoded: ("utf-8", 17, "invalid start byte"),
    errors.TooLarge: ("fd:1", 10_000_000, 100_000, "read pages, or search it"),
    errors.NotText: ("fd:1", "image/png", 20_480),
    errors.StreamClosed: ("fd:1", "sealed"),
    errors.StreamBroken: ("fd:1", "writer_lost"),
    errors.Conflict: ("name:plan.md", "other"),
    errors.PathRefused: ("../secret", "it leaves the export root"),
    errors.TargetExists: ("out.txt",),
    errors.TargetMissing: ("out.txt",),
    errors.WriteFailed: ("out.txt", "No space left on device"),
    errors.CallInterrupted: ("this call of send_mail",),
    errors.Cancelled: ("triage.1",),
    errors.Fenced: ("triage.1", "attempt 2 runs it"),
    errors.InvalidProgram: ("agent.toml: limits.max_turns", "must be an integer >= 1"),
    errors.NoWorker: ("no live worker runs agents; start one with `fdstore worker`",),
    errors.QuotaExceeded: ("tree_bytes", 4_294_967_296),
    errors.SpawnLimit: ("tree_live", 64),
    errors.TimedOut: ("the end of triage.1", 30.0),
    errors.TreeInUse: ("triage", "triage.1", "running"),
    errors.UnknownProgram: ("expret", ("expert", "reader")),
    errors.DamagedRecord: ("the tree triage", "its hash is a string"),
    errors.LookingOnly: ("redis://127.0.0.1:6379", "a commit"),
    errors.NewerFormat: ("the tree triage", "format 9"),
    errors.StartFailed: ("the embedded server", "redis-server exited with code 1"),
    errors.StoreFull: ("used 512 MiB of 512 MiB",),
    errors.StoreLostData: ("fd:1 of triage", "its key is gone"),
    errors.StoreNotReady: ("127.0.0.1:6379", "Redis is busy with a script", "wait for its end"),
    errors.StoreReadOnly: ("it is a replica",),
    errors.StoreRefused: ("127.0.0.1:6379", "a wrong password", "check the password in FDSTORE_URL"),
    errors.StoreUnavailable: ("127.0.0.1:6379", "connection refused"),
    errors.WrongEventLoop: ("unix:///run/redis.sock",),
    errors.UnsafeStore: ("127.0.0.1:6379", "maxmemory-policy is allkeys-lru"),
}

REMEDIES: Mapping[str, str] = {
    "cancelled": "Nothing: the process was ended on purpose.",
    "conflict": "Read what is there now, and decide again. Nothing was changed.",
    "fenced": "Stop working for the process: it has ended, or another worker has it.",
    "file_exists": "Use another name, or `exist_ok=True`.",
    "file_not_found": "Use a file that exists, or `create=True`.",
    "invalid_argument": "Correct the argument that it names. Nothing was done.",
    "invalid_page": "Read a page that exists; `pages` says how many there are.",
    "invalid_range": "Read a line or character that exists; `total` says how many there are.",
    "missing_extra": "Install the extra.",
    "no_worker": "Start a worker: `fdstore up` on this machine, `fdstore worker` for a store by URL.",
    "not_found": "Use an id that it names; `known` has them. Ids are never reused, nor by a later tree.",
    "not_text": "Use `read_bytes`, `open_bytes` or `export`.",
    "permission_error": "Stay within what was permitted, or have the operator permit more: directories, "
    "functions and commands by options of `fdstore worker`, users by the ACL of Redis.",
    "quota_exceeded": "Drop what is not needed, or raise the limit: `[limits]` of the program, "
    "or `fdstore limits`.",
    "spawn_limit": "End processes, or raise the limit in `[limits]` of the program.",
    "store_full": "Drop what takes room (`fdstore du`), or raise `maxmemory`. Reading goes on working.",
    "store_lost_data": "Run `fdstore doctor --deep`, and restore a backup.",
    "store_readonly": "Use the URL of the primary, mend its disk, or start the replicas that it needs.",
    "store_unavailable": "Check `$FDSTORE_URL` and the server. Workers wait until it is back.",
    "stream_broken": "Read what was stored before; `reason` says how the writer failed.",
    "stream_closed": "Write to a new descriptor.",
    "timeout": "Wait longer, or find out why it did not happen: `fdstore ps`, `fdstore log PROC`.",
    "too_large": "Read pages, search, or extract the part that matters.",
    "unknown_outcome": "Find out whether it happened before you repeat it. A lost reply is asked for again "
    "for 10 s first: the store was out of reach for longer, or a worker was lost during the call.",
    "unknown_program": "Use a program that it names, or add it to `[linked_programs]` or `[commands]`.",
    "unsafe_store": "Set `maxmemory-policy noeviction`, or upgrade Redis or fdstore. "
    "`connect(looking=True)` reads such a store.",
    "write_error": "Make room, or mend the directory, and repeat. The old file is unchanged.",
}


def page() -> str:
    blocks = [markdown.paragraphs(INTRODUCTION), "## By type"]
    kinds: dict[str, list[type[FDStoreError]]] = {}
    for error in classes():
        kinds.setdefault(error.type, []).append(error)
    rows = []
    for kind in sorted(kinds):
        names = ", ".join(f"[`{each.__name__}`](#{each.__name__.lower()})" for each in kinds[kind])
        rows.append([f"`{kind}`", names, REMEDIES[kind]])
    blocks += [markdown.table(["type", "classes", "what to do"], rows), "## By class"]
    for error in sorted(classes(), key=lambda each: each.__name__):
        blocks += description(error)
    return markdown.page("Errors", blocks)


def classes() -> list[type[FDStoreError]]:
    """Return every class of `fdstore.errors` but the root."""
    found = (getattr(errors, name) for name in errors.__all__)
    return [each for each in found if isinstance(each, type) and each is not FDStoreError]


def description(error: type[FDStoreError]) -> Iterator[str]:
    yield f"### {error.__name__}"
    parents = [each for each in error.__bases__ if each is not FDStoreError]
    signature = ", ".join(parameters(error))
    kind = f"`{error.__name__}({signature})`, type `{error.type}`"
    if parents:
        kind += f", a subclass of `{parents[0].__name__}`"
    yield markdown.paragraph(f"{kind}. {markdown.prose(error.__doc__ or '')}")
    yield markdown.fence(str(error(*SAMPLES[error])), "output")


def parameters(error: type[FDStoreError]) -> list[str]:
    """Return the names of the arguments: those of the first class that has a constructor."""
    for each in error.__mro__:
        if "__init__" in vars(each):
            return list(inspect.signature(vars(each)["__init__"]).parameters)[1:]
    return []
