"""The Redis users of deploy/ have exactly the permissions they need."""

from __future__ import annotations

import re

import pytest
import redis

import fdstore
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.errors import QuotaExceeded
from fdstore.local.redis_conf import binary_version
from fdstore.setup import settings
from tests.deploy.deployed import DEPLOY, PASSWORD, ROOT, RUNBOOK, Deployed
from tests.process_template import run_command
from tests.servers import FORBIDDEN


def granted(user: str) -> set[str]:
    """Return the commands that users.acl allows by name."""
    [line] = [
        line for line in (DEPLOY / "users.acl").read_text().split("\n") if line.startswith(f"user {user} ")
    ]
    return {word[1:] for word in line.split() if re.fullmatch(r"\+[a-z|]+", word)}


def test_no_user_can_log_in_before_a_password_is_set(deployed):
    open_door = Deployed(deployed.binary, deployed.folder, with_passwords=False)

    with open_door.running():
        for user, password in (("default", ""), ("worker", ""), ("worker", PASSWORD), ("admin", PASSWORD)):
            with open_door.client(user, password) as client, pytest.raises(redis.AuthenticationError):
                client.ping()
        with open_door.client("probe", "any") as probe, pytest.raises(redis.exceptions.NoPermissionError):
            probe.get("fdstore:trees")


def test_the_worker_user_can_run_every_client_operation_and_nothing_else(deployed, tmp_path):
    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            proc = store.process("triage")
            proc.create("one\ntwo\n" * 2000)
            child = proc.child(["fd:1"])
            assert child.read("fd:1#L2").text == "two\n"
            assert child.search("fd:1", "t.o").matches == 2000
            child.extract("fd:1", mode="line", start=2)
            child.export("fd:1", tmp_path / "out.txt")
            child.fork().end()
            proc.close("fd:1")
            child.end()
            dispatcher = Dispatcher(deployed.url("worker"))
            dispatcher.wake("triage")
            dispatcher.close()
        with deployed.client("worker") as client, deployed.client("admin") as admin:
            refused_before = [entry["object"] for entry in admin.acl_log()]
            for command in ("KEYS *", "FLUSHALL", "CONFIG GET dir", "ACL LIST", "GET other", "SHUTDOWN"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    client.execute_command(*command.split())

    # denied and ignored: CLIENT SETINFO by redis-py on some servers, and the check on connecting whether a
    # truncated log is loaded
    assert set(refused_before) <= {"client", "client|setinfo", "config", "config|get"}


def test_the_reader_user_can_read_and_cannot_write(deployed):
    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            store.process("triage").create("text\n")
        with deployed.client("worker") as worker:  # a user with write access would record the use
            worker.hset("fdstore:{triage}", "used_at", "1000000000")
        with deployed.client("reader") as reader:
            assert reader.hget("fdstore:{triage}:triage:fd:1:pages", "1") == b"text\n"
            assert reader.zrange("fdstore:trees", 0, -1) == [b"triage"]
            for command in ("SET fdstore:x 1", "KEYS *", "GET other", "EVAL return 0", "FLUSHALL"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    reader.execute_command(*command.split())
        [row] = re.findall(r"^\| `reader` .*$", RUNBOOK, re.M)
        verbs = re.findall(r"`fdstore (\w+)`", row)
        for verb in verbs:
            words = {"ls": ["triage"], "holders": ["triage", "1"]}.get(verb, [])
            line = [verb, *words, "--url", deployed.url("reader")]
            run_command(*line).check_returncode()

    assert verbs


def test_every_command_in_the_code_is_allowed_for_the_worker_user():
    lua = "".join(path.read_text() for path in (ROOT / "fdstore/store/lua").glob("*.lua"))
    python = "".join(path.read_text() for path in (ROOT / "fdstore/store").rglob("*.py"))

    used = set(re.findall(r"redis\.p?call\('(\w+)'", lua)) | set(
        re.findall(r"\(\s*\"([A-Z]{3,})\", ", python)
    )

    allowed = {name.partition("|")[0] for name in granted("worker")}
    does_without = {"config"}
    assert {command.lower() for command in used} - allowed == does_without, "users.acl must allow these"


def test_the_users_can_access_the_default_keys():
    prefix, queue = settings.DEFAULT_PREFIX, f"~{settings.queue_prefix(settings.DEFAULT_PREFIX)}*"
    expected = {
        "worker": [
            *(f"~{prefix}:[^l]*", f"%R~{prefix}:limits", f"%R~{prefix}:logins", f"%R~{prefix}:let_pass"),
            queue,
        ],
        "reader": [f"~{prefix}:*", queue],
    }
    for user, patterns in expected.items():
        [line] = re.findall(rf"^user {user} .*$", (DEPLOY / "users.acl").read_text(), re.M)
        assert re.findall(r"(?:%R)?~\S+", line) == patterns


def test_the_users_for_redis_6_2_differ_only_in_that_no_key_is_read_only():
    later, oldest = ((DEPLOY / name).read_text() for name in ("users.acl", "users-6.2.acl"))

    assert oldest == later.replace("%R~", "~")


def test_the_worker_user_reads_ceilings_and_only_the_operator_sets_them(deployed):
    set_ceiling = ["limits", "set", "tree_fds", "1", "--url"]
    with deployed.running():
        run_command(*set_ceiling, deployed.url("admin")).check_returncode()

        with fdstore.connect(deployed.url("worker")) as store:
            proc = store.process("triage")
            proc.create("one")
            with pytest.raises(QuotaExceeded):
                proc.create("two")
        refused = run_command(*set_ceiling, deployed.url("worker"))
        with deployed.client("worker") as client:
            if binary_version(deployed.binary) >= (7, 0):
                for command in (
                    "HSET fdstore:limits tree_fds 9",
                    "DEL fdstore:limits",
                    "UNLINK fdstore:limits",
                    "HSET fdstore:logins digest token",
                    "HSET fdstore:let_pass problem reason",
                ):
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        client.execute_command(*command.split())
                assert refused.returncode == 1


REACHES_OTHERS = """
ZREM fdstore:trees triage
ZADD fdstore:trees 0 triage
ZRANGE fdstore:trees 0 -1
ZRANGE fdstore:workers 0 -1
GET fdstore:sweeper
HGETALL fdstore:{triage}
HSET fdstore:{triage} live 9
UNLINK fdstore:{triage}
HGET fdstore:limits tree_fds
MSET acme:x 1 fdstore:x 1
RENAME acme:sweeper fdstore:sweeper
LPUSH fdq:fdstore:queue 7
RPOP fdq:fdstore:queue
SET fdq:fdstore:queue 1
"""


def test_a_tenant_cannot_access_keys_of_another(deployed):
    deployed.add_tenant()
    with deployed.running():
        for user, prefix in (("worker", "fdstore"), ("acme", "acme")):
            with fdstore.connect(deployed.url(user), prefix) as store:
                store.process("triage").create(f"of {prefix}\n")
                dispatcher = Dispatcher(store.url, prefix=prefix)
                dispatcher.wake("triage")
                dispatcher.close()
        with deployed.client("acme") as tenant:
            for command in REACHES_OTHERS.strip().splitlines():
                with pytest.raises(redis.exceptions.NoPermissionError):
                    tenant.execute_command(*command.split())
            for keys in ([], ["fdstore:trees"]):
                with pytest.raises(redis.ResponseError, match=FORBIDDEN):
                    tenant.eval("return redis.call('ZREM', 'fdstore:trees', 'triage')", len(keys), *keys)

        with fdstore.connect(deployed.url("worker")) as store:
            assert store.process("triage").read("fd:1").text == "of fdstore\n"
            assert [process.id for process in store.processes()] == ["triage"]
        with deployed.client("admin") as admin:
            assert (admin.llen("fdq:fdstore:queue"), admin.llen("fdq:acme:queue")) == (1, 1)


def test_a_user_restricted_to_one_tree_could_change_the_list_of_all_trees(deployed):
    """The runbook therefore advises against such a user: the writes that it needs can remove other trees."""
    users = deployed.folder / "users.acl"
    [worker] = re.findall(r"^user worker .*$", users.read_text(), re.M)
    only_one = re.sub(r"(?:%R)?~\S+", "", worker).replace("user worker", "user one")
    with users.open("a") as file:
        file.write(f"{only_one} ~fdstore:{{triage}}* ~fdstore:trees ~fdstore:limits\n")

    with deployed.running():
        with fdstore.connect(deployed.url("worker")) as store:
            store.process("other").create("text\n")
        with fdstore.connect(deployed.url("one")) as store:
            store.process("triage").create("text\n")
        with deployed.client("one") as one:
            with pytest.raises(redis.exceptions.NoPermissionError):
                one.hgetall("fdstore:{other}")
            assert one.zrem("fdstore:trees", "other") == 1

    assert "A user of one tree alone cannot be made" in RUNBOOK
