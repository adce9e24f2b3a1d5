"""All errors that fdstore raises: one root class, and one class per kind of failure.

A class declares everything about its kind of failure, see `FDStoreError`: a stable `type` (shown to models,
in logs and in `--json` output), facts as fields, a sentence, a remedy, and what callers do about it. `args`
always equals the fields, so errors survive pickling. The text states the problem and what to do about it; it
never repeats a large argument.

Errors of libraries (redis, os) are translated once, at the call, with `raise ... from`.

`make generate` writes the imports of the classes here, and `__all__`.
"""

from __future__ import annotations

from fdstore.errors.base import (
    SHOWN_IDS,
    FDStoreError,
    InvalidArgument,
    MissingExtra,
    NoSuchValue,
    NotAllowed,
    NotFound,
    UnknownOutcome,
    joined,
    quoted,
)
from fdstore.errors.content import (
    Conflict,
    NotEncoded,
    NotText,
    PageOutOfRange,
    PositionOutOfRange,
    StreamBroken,
    StreamClosed,
    TooLarge,
)
from fdstore.errors.files import (
    PathRefused,
    TargetExists,
    TargetMissing,
    WriteFailed,
)
from fdstore.errors.processes import (
    CallInterrupted,
    Cancelled,
    Fenced,
    InvalidProgram,
    NobodyAnswered,
    NoWorker,
    QuestionClosed,
    QuotaExceeded,
    SpawnLimit,
    TimedOut,
    TreeInUse,
    UnknownProgram,
)
from fdstore.errors.store import (
    DamagedRecord,
    LookingOnly,
    NewerFormat,
    ObjectStoreUnavailable,
    StartFailed,
    StoreFull,
    StoreLostData,
    StoreNotReady,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
    TreeOutOfReach,
    UnsafeStore,
    WrongEventLoop,
)


def all_errors() -> list[type[FDStoreError]]:
    """Return the classes that are declared in this package, in the order of their names."""
    found = (each for each in globals().values() if isinstance(each, type))
    return sorted(
        (each for each in found if issubclass(each, FDStoreError) and each is not FDStoreError),
        key=lambda each: each.__name__,
    )


def _that(consequence: str) -> tuple[type[FDStoreError], ...]:
    return tuple(each for each in all_errors() if getattr(each, consequence))


STORE_FAILURES = _that("retried")
REFUSALS = _that("waited_for")
TAKES_NO_WRITES = _that("readable")
SKIPPABLE = _that("skipped")

__all__ = [
    "REFUSALS",
    "SHOWN_IDS",
    "SKIPPABLE",
    "STORE_FAILURES",
    "TAKES_NO_WRITES",
    "CallInterrupted",
    "Cancelled",
    "Conflict",
    "DamagedRecord",
    "FDStoreError",
    "Fenced",
    "InvalidArgument",
    "InvalidProgram",
    "LookingOnly",
    "MissingExtra",
    "NewerFormat",
    "NoSuchValue",
    "NoWorker",
    "NobodyAnswered",
    "NotAllowed",
    "NotEncoded",
    "NotFound",
    "NotText",
    "ObjectStoreUnavailable",
    "PageOutOfRange",
    "PathRefused",
    "PositionOutOfRange",
    "QuestionClosed",
    "QuotaExceeded",
    "SpawnLimit",
    "StartFailed",
    "StoreFull",
    "StoreLostData",
    "StoreNotReady",
    "StoreReadOnly",
    "StoreRefused",
    "StoreUnavailable",
    "StreamBroken",
    "StreamClosed",
    "TargetExists",
    "TargetMissing",
    "TimedOut",
    "TooLarge",
    "TreeInUse",
    "TreeOutOfReach",
    "UnknownOutcome",
    "UnknownProgram",
    "UnsafeStore",
    "WriteFailed",
    "WrongEventLoop",
    "all_errors",
    "joined",
    "quoted",
]
