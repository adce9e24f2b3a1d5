"""Errors about the Redis behind a store: unreachable, full, read-only, damaged, unsafe."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError


class StoreFull(FDStoreError):
    """Redis is at its memory limit and refused a write."""

    type = "store_full"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"Redis is full ({self.problem}): `fdstore du` shows what takes room; drop it, or raise maxmemory"
        )


class StoreReadOnly(FDStoreError):
    """Redis takes no writes now: a replica, or its disk failed."""

    type = "store_readonly"

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"Redis takes no writes ({self.problem}); point FDSTORE_URL at a primary with a working disk"


class StoreUnavailable(FDStoreError):
    """Redis cannot be reached."""

    type = "store_unavailable"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"Redis at {self.where}: {self.problem}; check FDSTORE_URL, or `fdstore up` starts one"


class StoreRefused(FDStoreError):
    """Redis answers, and refuses this user: no or a wrong password, a command or key that it may not use."""

    type = "permission_error"

    def __init__(self, where: str, problem: str, advice: str) -> None:
        super().__init__(where, problem, advice)
        self.where, self.problem, self.advice = where, problem, advice

    def __str__(self) -> str:
        return f"Redis at {self.where} refuses: {self.problem}; {self.advice}"


class StartFailed(StoreUnavailable):
    """The embedded server, or a worker beside it, cannot be started: no URL is wrong, and `fdstore up`
    would meet the same."""

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class StoreLostData(FDStoreError):
    """Redis no longer has what it had stored: its log lost its tail, or it was emptied."""

    type = "store_lost_data"

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def __str__(self) -> str:
        return f"the store lost {self.what}: {self.problem}; run `fdstore doctor --deep`, or restore a backup"


class DamagedRecord(StoreLostData):
    """A record in Redis is not what was written there: of another type, cut, or with impossible numbers.

    `what` names the key, or the tree that it belongs to. Other trees are not affected.
    """

    def __str__(self) -> str:
        return f"{self.what} cannot be read: {self.problem}; the record is damaged"


class UnsafeStore(FDStoreError):
    """A Redis that would lose content by design: too old, or evicting."""

    type = "unsafe_store"

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"the Redis at {self.where} is not safe to keep content in: {self.problem}"


class LookingOnly(UnsafeStore):
    """A write through a store that was connected with `looking=True`. It was not sent."""

    def __str__(self) -> str:
        return f"the Redis at {self.where} is only looked at (looking=True): {self.problem} was not sent"


class NewerFormat(UnsafeStore):
    """A tree or a program that a newer fdstore wrote, in a way that this one does not know.

    `where` names it, `problem` says what is newer. A worker leaves such a process to newer workers.
    """

    def __str__(self) -> str:
        return f"{self.where} was written by a newer fdstore ({self.problem}): upgrade this one"
