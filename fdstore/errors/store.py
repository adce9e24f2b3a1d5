"""Errors about the Redis behind a store: unreachable, full, read-only, damaged, unsafe."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError


class StoreFull(FDStoreError):
    """Redis has reached its memory limit and refused a write."""

    type = "store_full"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"Redis is full ({self.problem}): `fdstore du` shows what takes room; drop it, or raise maxmemory"
        )


_UNTIL_IT_WRITES = {
    "MISCONF": "free or mend its disk, see its log",
    "NOREPLICAS": "start its replicas, or lower min-replicas-to-write",
}


class StoreReadOnly(FDStoreError):
    """Redis accepts no writes: it is a replica, has too few replicas, or its disk failed."""

    type = "store_readonly"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        code = self.problem.partition(" ")[0]
        advice = _UNTIL_IT_WRITES.get(code, "point FDSTORE_URL at a primary with a working disk")
        return f"Redis takes no writes ({self.problem}); {advice}"


class StoreUnavailable(FDStoreError):
    """Redis cannot be reached."""

    type = "store_unavailable"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"Redis at {self.where}: {self.problem}; check FDSTORE_URL, or unset it and run `fdstore up`"


class StoreNotReady(StoreUnavailable):
    """Redis serves nothing now, and the URL is not why: it is busy with a script, loads its data, fails over,
    or could not be started."""

    def __init__(self, where: str, problem: str, advice: str) -> None:
        super().__init__(where, problem)
        self.args = (where, problem, advice)
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem} ({self.where}); {self.advice}"


class StoreRefused(FDStoreError):
    """Redis refuses this user: a missing or wrong password, or a forbidden command or key."""

    type = "permission_error"

    def __init__(self, where: str, problem: str, advice: str) -> None:
        super().__init__(where, problem, advice)
        self.where, self.problem, self.advice = where, problem, advice

    def __str__(self) -> str:
        return f"Redis at {self.where} refuses: {self.problem}; {self.advice}"


class WrongEventLoop(FDStoreError):
    """A store of `fdstore.aio` is awaited in another event loop than the one in which it was connected, as by
    a second `asyncio.run`."""

    type = "invalid_argument"

    def __init__(self, where: str) -> None:
        super().__init__(where)
        self.where = where

    def __str__(self) -> str:
        return (
            f"the connection to {self.where} belongs to another event loop; connect in each loop, or close "
            "the store in its loop before it is used in the next"
        )


class StartFailed(StoreNotReady):
    """The embedded server or its worker cannot be started. Separate from `StoreUnavailable`, whose advice
    (check the URL, run `fdstore up`) does not help."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem, "")
        self.args = (where, problem)

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class StoreLostData(FDStoreError):
    """Redis lost stored data: its log was truncated, or it was emptied."""

    type = "store_lost_data"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"the store lost {self.what}: {self.problem}; run `fdstore doctor --deep`, or restore a backup"


class DamagedRecord(StoreLostData):
    """A record in Redis is damaged: of another type, truncated, or with impossible numbers.

    `what` names the key, or the tree that it belongs to. Other trees are not affected.
    """

    def __str__(self) -> str:
        return f"{self.what} cannot be read: {self.problem}; the record is damaged"


class UnsafeStore(FDStoreError):
    """Redis could lose content: its version is too old, or it evicts keys."""

    type = "unsafe_store"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"the Redis at {self.where} is not safe to keep content in: {self.problem}"


class LookingOnly(UnsafeStore):
    """A write through a store connected with `looking=True`. It was not sent."""

    def __str__(self) -> str:
        return f"the Redis at {self.where} is only looked at (looking=True): {self.problem} was not sent"


class NewerFormat(UnsafeStore):
    """A tree or program was written by a newer fdstore, in a format that this one does not know.

    `where` names it, `problem` the unknown part. A worker leaves such a process to newer workers.
    """

    def __str__(self) -> str:
        return f"{self.where} was written by a newer fdstore ({self.problem}): upgrade this one"
