"""Errors about the Redis behind a store: unreachable, full, read-only, damaged, unsafe."""

from __future__ import annotations

from fdstore.errors.base import FDStoreError, given


class StoreFull(FDStoreError):
    """Redis has reached its memory limit and refused a write."""

    type = "store_full"
    says = "Redis is full ({problem}): `fdstore du` shows what takes room; drop it, or raise maxmemory"
    remedy = "Drop what takes room (`fdstore du`), or raise `maxmemory`. Reading goes on working."
    sample = given("used 512 MiB of 512 MiB")
    retried = waited_for = readable = True

    problem: str


_UNTIL_IT_WRITES = {
    "MISCONF": "free or mend its disk, see its log",
    "NOREPLICAS": "start its replicas, or lower min-replicas-to-write",
}


class StoreReadOnly(FDStoreError):
    """Redis accepts no writes: it is a replica, has too few replicas, or its disk failed."""

    type = "store_readonly"
    remedy = "Use the URL of the primary, mend its disk, or start the replicas that it needs."
    sample = given("it is a replica")
    stops = retried = waited_for = readable = True

    problem: str

    def __str__(self) -> str:
        code = self.problem.partition(" ")[0]
        advice = _UNTIL_IT_WRITES.get(code, "point FDSTORE_URL at a primary with a working disk")
        return f"Redis takes no writes ({self.problem}); {advice}"


class StoreUnavailable(FDStoreError):
    """Redis cannot be reached."""

    type = "store_unavailable"
    says = "Redis at {where}: {problem}; check FDSTORE_URL, or unset it and run `fdstore up`"
    remedy = "Check `$FDSTORE_URL` and the server. Workers wait until it is back."
    sample = given("127.0.0.1:6379", "connection refused")
    http = 503
    stops = retried = True

    where: str
    problem: str


class StoreNotReady(StoreUnavailable):
    """Redis serves nothing now, and the URL is not why: it is busy with a script, loads its data, fails over,
    or could not be started."""

    says = "{problem} ({where}); {advice}"
    sample = given("127.0.0.1:6379", "Redis is busy with a script", "wait for its end")
    waited_for = True

    advice: str


class ObjectStoreUnavailable(FDStoreError):
    """The object store of cold contents cannot be reached, or refuses: contents in Redis are not affected."""

    type = "store_unavailable"
    says = "the object store {where}, which has cold contents: {problem}; all other contents can be read"
    remedy = "Of an object store: check its URL (`fdstore limits`), and its credentials in the environment."
    sample = given("s3://logs/fdstore", "connection refused")
    http = 503

    where: str
    problem: str


class StoreRefused(FDStoreError):
    """Redis refuses this user: a missing or wrong password, or a forbidden command or key."""

    type = "permission_error"
    says = "Redis at {where} refuses: {problem}; {advice}"
    remedy = "Of Redis: have the operator permit more to its user, by the ACL."
    sample = given("127.0.0.1:6379", "a wrong password", "check the password in FDSTORE_URL")
    http = 403
    stops = retried = readable = True

    where: str
    problem: str
    advice: str


class WrongEventLoop(FDStoreError):
    """A store of `fdstore.aio` is awaited in another event loop than the one in which it was connected, as by
    a second `asyncio.run`."""

    type = "invalid_argument"
    says = (
        "the connection to {where} belongs to another event loop; connect in each loop, or close the store "
        "in its loop before it is used in the next"
    )
    remedy = "Of an event loop: connect in each."
    sample = given("unix:///run/redis.sock")

    where: str


class StartFailed(StoreNotReady):
    """The embedded server or its worker cannot be started. Separate from `StoreUnavailable`, whose advice
    (check the URL, run `fdstore up`) does not help."""

    says = "{where}: {problem}"
    sample = given("the embedded server", "redis-server exited with code 1")

    advice: str = ""


class StoreLostData(FDStoreError):
    """Redis lost stored data: its log was truncated, or it was emptied."""

    type = "store_lost_data"
    says = "the store lost {what}: {problem}; run `fdstore doctor --deep`, or restore a backup"
    remedy = "Run `fdstore doctor --deep`, and restore a backup."
    sample = given("fd:1 of triage", "its key is gone")
    http = 500
    skipped = True

    what: str
    problem: str


class DamagedRecord(StoreLostData):
    """A record in Redis is damaged: of another type, truncated, or with impossible numbers.

    `what` names the key, or the tree that it belongs to. Other trees are not affected.
    """

    says = "{what} cannot be read: {problem}; the record is damaged"
    sample = given("the tree triage", "its hash is a string")


class TreeOutOfReach(DamagedRecord):
    """The node of a Cluster that has a tree does not answer. Trees of other nodes are not affected."""

    type = "store_unavailable"
    says = "{what} is out of reach, those of other nodes are not: {problem}"
    remedy = "Of a tree in a Cluster: start its node, or let a replica take over."
    sample = given("tree triage", "Connection refused")
    http = 503


class UnsafeStore(FDStoreError):
    """Redis could lose content: its version is too old, or it evicts keys."""

    type = "unsafe_store"
    says = "the Redis at {where} is not safe to keep content in: {problem}"
    remedy = (
        "Set `maxmemory-policy noeviction`, or upgrade Redis or fdstore. `connect(looking=True)` reads such "
        "a store."
    )
    sample = given("127.0.0.1:6379", "maxmemory-policy is allkeys-lru")
    http = 403
    stops = retried = readable = True

    where: str
    problem: str


class LookingOnly(UnsafeStore):
    """A write through a store connected with `looking=True`. It was not sent."""

    says = "the Redis at {where} is only looked at (looking=True): {problem} was not sent"
    sample = given("redis://127.0.0.1:6379", "a commit")


class NewerFormat(UnsafeStore):
    """A tree or program was written by a newer fdstore, in a format that this one does not know.

    `where` names it, `problem` the unknown part. A worker leaves such a process to newer workers.
    """

    says = "{where} was written by a newer fdstore ({problem}): upgrade this one"
    sample = given("the tree triage", "format 9")
    http = 500
    skipped = True
