"""Errors of Redis mean the same in the words of every supported server."""

from __future__ import annotations

import pytest
from redis.exceptions import NoPermissionError, OutOfMemoryError, ReadOnlyError, RedisError, ResponseError

from fdstore.errors import DamagedRecord, FDStoreError, StoreFull, StoreReadOnly, StoreRefused
from fdstore.wire.redis_errors import raise_error, translate
from tests.script_calls import script_call

OLD = "Error running script (call to f_72c8ff3e45): @user_script:7: "
"""Redis 6.2 begins with this."""

REDIS_7 = " script: 72c8ff3e45, on @user_script:7."
VALKEY_9 = " script: on @user_script:7."

WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
IN_LUA = "user_script:7: attempt to perform arithmetic on a nil value"
FEW_REPLICAS = "NOREPLICAS Not enough good replicas to write"
FULL = "command not allowed when used memory > 'maxmemory'."
REPLICA = "You can't write against a read only replica."
FORBIDDEN = "The user executing the script can't run this command or subcommand"

CLAIM = script_call("claim", tree="fdstore:{hurt}")


def error_from(error: RedisError) -> FDStoreError:
    with pytest.raises(FDStoreError) as caught:
        raise_error([CLAIM], [error], "redis://a")
    return caught.value


@pytest.mark.parametrize(
    ("kind", "facts", "replies"),
    [
        pytest.param(
            DamagedRecord,
            ("a record of tree hurt", f"{WRONG_TYPE} (claim)"),
            [f"{OLD}{WRONG_TYPE}", f"{WRONG_TYPE}{REDIS_7}", f"{WRONG_TYPE}{VALKEY_9}"],
            id="a key of another type",
        ),
        pytest.param(
            DamagedRecord,
            ("a record of tree hurt", f"{IN_LUA} (claim)"),
            [f"{OLD}{IN_LUA}", f"{IN_LUA}{REDIS_7}", f"{IN_LUA}{VALKEY_9}"],
            id="a value that a script cannot use",
        ),
        pytest.param(
            StoreFull,
            ("maxmemory is reached",),
            [
                f"{OLD}@user_script: 7: -OOM {FULL}",
                OutOfMemoryError(f"{FULL}{REDIS_7}"),
                OutOfMemoryError(f"{FULL}{VALKEY_9}"),
            ],
            id="no memory",
        ),
        pytest.param(
            StoreReadOnly,
            ("You can't write against a read only replica",),
            [
                f"{OLD}@user_script: 7: -READONLY {REPLICA}",
                ReadOnlyError(f"{REPLICA}{REDIS_7}"),
                ReadOnlyError(f"{REPLICA}{VALKEY_9}"),
            ],
            id="a replica",
        ),
        pytest.param(
            StoreReadOnly,
            (FEW_REPLICAS,),
            [
                f"{OLD}@user_script: 7: -{FEW_REPLICAS}.",
                f"{FEW_REPLICAS}.{REDIS_7}",
                f"{FEW_REPLICAS}.{VALKEY_9}",
            ],
            id="too few replicas",
        ),
    ],
)
def test_an_error_in_a_script_is_the_same_from_every_server(
    kind: type[FDStoreError], facts: tuple[str, ...], replies: list[str | RedisError]
) -> None:
    errors = [error_from(ResponseError(each) if isinstance(each, str) else each) for each in replies]

    assert {(type(error), error.args) for error in errors} == {(kind, facts)}


@pytest.mark.parametrize(
    "reply",
    [
        f"{OLD}@user_script: 7: {FORBIDDEN}",
        f"{FORBIDDEN}{REDIS_7}",
        f"ACL failure in script: User w has no permissions to run the 'set' command{VALKEY_9}",
    ],
)
def test_a_command_that_a_user_may_not_run_in_a_script_is_refused_by_every_server(reply: str) -> None:
    found = error_from(ResponseError(reply))

    assert isinstance(found, StoreRefused)
    assert "user_script" not in str(found)


@pytest.mark.parametrize(
    ("message", "is_allowed_there"),
    [
        ("User w has no permissions to run the 'evalsha' command", True),
        ("this user has no permissions to run the 'set' command or its subcommand", True),
        ("User w has no permissions to run the 'config|get' command", False),
        ("User w has no permissions to run the 'config' command", False),
        ("No permissions to access a key", False),
    ],
)
def test_the_users_of_the_runbook_are_advised_only_where_one_of_them_may_do_it(
    message: str, is_allowed_there: bool
) -> None:
    said = str(translate(NoPermissionError(message), "redis://here"))

    assert "use the operator's URL" in said
    assert ("deploy/users.acl" in said) is is_allowed_there
