"""Errors of Redis and redis-py, translated into those of fdstore once.

Some errors are refusals that pass: the server did nothing, and does what is asked when it can again. They are
waited for like an outage (see `retry`).

    BUSY         a script runs for too long            LOADING     it reads its data after a start
    NOREPLICAS   it has too few replicas to write      READONLY    it is a replica, as after a failover
    MASTERDOWN   a replica that lost its primary       UNBLOCKED   it ended a blocking command, likewise
    TRYAGAIN     the slot moves to another node        CLUSTERDOWN no node serves the slot now
    OOM          it is full                            MISCONF     it cannot write to its disk

The last two may need a person, so only work that runs waits for them: its caller is not there to try again.

To an error in a script servers add where it was raised: Redis 6.2 before the message, Redis 7 and Valkey
after it. `bare_message` removes that, so that nothing else depends on the server.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LostConnection

from fdstore.errors import (
    DamagedRecord,
    FDStoreError,
    StoreFull,
    StoreNotReady,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
)
from fdstore.wire.operation import Batch, Command
from fdstore.wire.scripts import name_of

WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
"""WRONGTYPE: expected in the HSET of a refused batch (see `scripts.hset_if_accepted`)."""

NO_KEY = "no such key"
"""The error of RENAME for a missing key: also expected there."""

_EXPECTED = (WRONG_TYPE, NO_KEY, f"ERR {NO_KEY}")

_WHERE_RAISED = re.compile(
    r"\A(?:ERR )?Error running script \(call to \w+\): @user_script:\d+: (?:@user_script: ?\d+: )?-?"
    r"| script: (?:\w+, )?on @user_script:\d+\.?\Z"
)


def bare_message(error: Exception) -> str:
    """Return the message of an error, without where in a script it was raised.

    >>> bare_message(RedisError("Error running script (call to f_0a): @user_script:2: WRONGTYPE Operation"))
    'WRONGTYPE Operation'
    >>> bare_message(RedisError("WRONGTYPE Operation script: 0a, on @user_script:2."))
    'WRONGTYPE Operation'
    """
    return _WHERE_RAISED.sub("", str(error))


MAX_MESSAGE_CHARS = 1000
"""The most that is shown of why Redis cannot be reached."""

IN_A_SCRIPT = re.compile(r"NOPERM|NOAUTH|ACL failure in script|The user executing the script can't")
"""The errors for a command in a script that the ACL forbids; versions of Redis differ."""

_COMMAND = re.compile(r"the '(?!(?:acl|client|config)\b)[a-z|]+' command")
"""A command in an error that forbids it, if the workers of deploy/users.acl may run it."""

Codes: TypeAlias = frozenset[str]

WAITED_FOR: Codes = frozenset(
    {"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOREPLICAS", "READONLY", "TRYAGAIN", "UNBLOCKED"}
)
"""The refusals that every call waits for."""

WORK_WAITS_FOR: Codes = WAITED_FOR | {"OOM", "MISCONF"}
"""Those that a call of work that runs waits for."""

OF_WRITES: Codes = frozenset({"MISCONF", "NOREPLICAS", "OOM", "READONLY"})
"""The refusals of a server that reads."""

_REFUSAL_CODE = re.compile(rf"(?:\A|[: ]-|because of: )({'|'.join(sorted(WORK_WAITS_FOR))}) ")
"""A code at the begin of a message, in one that a script of Redis 6.2 wraps, or in that of an EXEC."""

_CODE_OF_CLASS: tuple[tuple[type[RedisError], str], ...] = (
    (BusyLoadingError, "LOADING"),
    (ReadOnlyError, "READONLY"),
    (OutOfMemoryError, "OOM"),
    (TryAgainError, "TRYAGAIN"),
    (MasterDownError, "MASTERDOWN"),
    (ClusterDownError, "CLUSTERDOWN"),
)
"""The errors that redis-py has a class for; it removes their code from the message."""


def refusal_code(error: BaseException | None) -> str | None:
    """Return the code of an error if it is a refusal that passes, else None.

    >>> refusal_code(RedisError("BUSY Redis is busy running a script.")), refusal_code(RedisError("ERR no"))
    ('BUSY', None)
    >>> refusal_code(RedisError("Transaction discarded because of: NOREPLICAS Not enough good replicas"))
    'NOREPLICAS'
    """
    for kind, code in _CODE_OF_CLASS:
        if isinstance(error, kind):
            return code
    found = _REFUSAL_CODE.search(str(error)) if isinstance(error, RedisError) else None
    return found[1] if found else None


def refusal_in(reply: Any, waits_for: Codes) -> RedisError | None:
    """Return the reply as an error if the server refused what was asked and will do it later, or refuses all
    service: a new connection is needed, which may find another server."""
    if isinstance(reply, list):  # of EXEC: its commands may be refused one by one
        return next((error for part in reply if (error := refusal_in(part, waits_for))), None)
    if not isinstance(reply, RedisError) or isinstance(reply, LostConnection):
        return reply if isinstance(reply, LostConnection) else None
    code = refusal_code(reply)
    if code not in waits_for:
        return None
    # Redis 6 wraps errors raised in scripts
    return ReadOnlyError(str(reply)) if code == "READONLY" else reply


_NOT_READY = {
    "BUSY": ("Redis is busy with a script", "wait for its end, or end it with `redis-cli script kill`"),
    "CLUSTERDOWN": ("the Cluster serves no slot yet, or not this one", "wait, or look at `cluster info`"),
    "LOADING": ("Redis is loading its data", "wait until it has"),
    "MASTERDOWN": ("Redis is a replica that has lost its primary", "wait, or point FDSTORE_URL at a primary"),
    "TRYAGAIN": ("the slot of this tree is on its way to another node", "wait until it is there"),
    "UNBLOCKED": ("Redis ended a blocking command", "call again"),
}
"""What the server is at while it refuses everything, and what to do."""


_DISCARDED = re.compile(r"\A(?:EXECABORT )?Transaction discarded because of: ")


def translate(error: Exception, where: str) -> FDStoreError:
    """Translate an error of redis-py. For errors it has a class for, redis-py removes the code from the
    message, but not if a script wraps the error."""
    message, code = bare_message(error), refusal_code(error)
    if code == "OOM" or "'maxmemory'" in message:
        return StoreFull("maxmemory is reached")
    if code in ("READONLY", "MISCONF", "NOREPLICAS"):
        return StoreReadOnly(_DISCARDED.sub("", message).removeprefix("READONLY ").partition(".")[0])
    if code is not None:
        return StoreNotReady(where, *_NOT_READY[code])
    if isinstance(error, AuthenticationError):
        return StoreRefused(where, message.rstrip("."), "check the user and the password in the store's URL")
    if isinstance(error, NoPermissionError) or IN_A_SCRIPT.search(message):
        advice = "use the operator's URL"
        if _COMMAND.search(message):
            advice += ", or a user with the commands of `worker` in deploy/users.acl"
        return StoreRefused(where, message.rstrip("."), advice)
    if len(message) > MAX_MESSAGE_CHARS:  # redis-py quotes the host, however long it is
        message = f"{message[:MAX_MESSAGE_CHARS]}..."
    return StoreUnavailable(where, message.rstrip("."))


def error_in(command: Command, reply: Any) -> RedisError | None:
    """Return the error in a reply, if any; for EXEC, the first error of its commands: a transaction runs on
    after one. The two errors that `scripts.hset_if_accepted` expects are ignored."""
    if command == ("EXEC",) and isinstance(reply, list):
        errors = (part for part in reply if isinstance(part, RedisError))
        return next((error for error in errors if str(error) not in _EXPECTED), None)
    return reply if isinstance(reply, RedisError) else None


def raise_error(batch: Batch, replies: list[Any], where: str) -> None:
    """Raise the first error among the replies, if there is one."""
    for i, error in enumerate(map(error_in, batch, replies)):
        if error is not None:
            raise _damage(batch, i, bare_message(error)) or translate(error, where) from error


def without_errors(replies: list[Any]) -> list[Any]:
    """Return the replies with None in place of errors."""
    return [None if isinstance(reply, RedisError) else reply for reply in replies]


_DAMAGE = re.compile(
    r"WRONGTYPE|\Auser_script:\d+: |not an integer|not a valid float|would overflow|would produce NaN"
    r"|Invalid stream ID|smaller than the target stream top item"
)
"""Errors of Redis for keys whose type or value is not what fdstore wrote; also errors in Lua, because scripts
compute with the values they read."""


def _damage(batch: Batch, number: int, message: str) -> DamagedRecord | None:
    """Return the error if a command or transaction hit a damaged record; None for any other refusal."""
    if not _DAMAGE.search(message) or _REFUSAL_CODE.search(message):
        return None
    command = batch[number]
    if command == ("EXEC",):
        command = next((each for each in reversed(batch[:number]) if each[0] == "EVALSHA"), batch[number - 1])
    is_script = command[0] in ("EVALSHA", "EVAL")
    key = str(command[3 if is_script else -2 if command[0] == "XREAD" else 1])
    tree = key.partition("{")[2].partition("}")[0] if is_script else ""
    if not tree:
        return DamagedRecord(f"the key {key}", message)
    return DamagedRecord(f"a record of tree {tree}", f"{message} ({name_of(command)})")
