"""All errors that fdstore raises: one root class, and one class per kind of failure.

A class has a stable `type` (shown to models, in logs and in `--json` output) and takes facts as constructor
arguments. `args` always equals these, so errors survive pickling. The text states the problem and what to do
about it; it never repeats a large argument.

Errors of libraries (redis, os) are translated once, at the call, with `raise ... from`.
"""

from __future__ import annotations

from fdstore.errors.base import (
    SHOWN_IDS,
    FDStoreError,
    InvalidArgument,
    MissingExtra,
    NotAllowed,
    NotFound,
    UnknownOutcome,
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
    NoWorker,
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
    StartFailed,
    StoreFull,
    StoreLostData,
    StoreNotReady,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
    UnsafeStore,
    WrongEventLoop,
)

REFUSALS = (StoreFull, StoreReadOnly, StoreNotReady)
"""Errors of a store that answers, and will do what was asked when it can again."""

STORE_FAILURES = (StoreUnavailable, StoreRefused, StoreFull, StoreReadOnly, UnknownOutcome, UnsafeStore)
"""Failures of the store, not of an agent: another attempt continues once the store answers again."""

__all__ = [
    "SHOWN_IDS",
    "STORE_FAILURES",
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
    "NoWorker",
    "NotAllowed",
    "NotEncoded",
    "NotFound",
    "NotText",
    "PageOutOfRange",
    "PathRefused",
    "PositionOutOfRange",
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
    "UnknownOutcome",
    "UnknownProgram",
    "UnsafeStore",
    "WriteFailed",
    "WrongEventLoop",
    "quoted",
]
