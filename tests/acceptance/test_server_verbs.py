"""The embedded server and its upkeep: up, down, status, gc, doctor, redis-cli."""

from __future__ import annotations

import os
import signal

import msgspec
import pytest
import redis

from fdstore.local.redis_server import PrivateServer, ServerStatus
from fdstore.store.processes import processes
from tests.acceptance.verbs import CLOSED_PORT_URL

# --- the server


def test_the_server_starts_on_demand_and_keeps_its_data_over_down_and_up(fresh):
    before = fresh("status", "--json")
    fresh("put", "triage", "-", stdin=b"kept")
    running = fresh("status", "--json").document
    down = fresh("down")
    down_again = fresh("down", "--json")
    up = fresh("up", "--json")

    assert before.document["store"] is None
    assert before.document["server"]["running"] is False
    assert running["server"]["running"] is True
    assert {"trees": 1, "processes": 1, "live": 1, "contents": 1, "bytes": 4}.items() <= running[
        "store"
    ].items()
    assert [" ".join(line.split()) for line in down.lines] == ["worker was not running", "server stopped"]
    assert down_again.document == {
        "server": {"stopped": False},
        "worker": {"stopped": False},
    }
    server = msgspec.convert(up.document["server"], ServerStatus)
    assert (server.running, server.data_dir) == (True, str(fresh.data_dir))
    assert server.pid != running["server"]["pid"]
    assert fresh("cat", "triage", "1").raw == b"kept"


def test_status_prints_text_for_people(fresh, tmp_path):
    fresh.environment = fresh.without_key() | {"HOME": str(tmp_path)}
    stopped = fresh("status")
    fresh("up")
    running = fresh("status")

    assert stopped.lines[0].startswith("server  not running")
    assert not fresh.data_dir.joinpath("redis.log").exists() or "pid" in running.out
    names = [line.split()[0] for line in running.lines]
    expected = ["server", "url", "program", "data", "memory", "holds", "workers", "agents", "commands"]
    assert names[:-2] == expected
    assert running.lines[-1] in ("no problems", "no problems, 1 note")
    assert names[-2] in ("health", "note")  # a worker begins to sweep some seconds after its start
    assert "not run: no key for the Messages API: set ANTHROPIC_API_KEY" in running.out
    assert "commands run " in running.out or "commands are off on this worker" in running.out
    assert "0 trees, 0 processes (0 not ended), 0 contents with 0 B" in running.out
    [program] = [line.split()[1] for line in running.lines if line.startswith("program")]
    assert os.access(program, os.X_OK)
    assert fresh("status", "--json").document["server"]["program"] == program


def test_status_says_whether_a_silent_server_loads_its_data(fresh):
    running = fresh("up", "--json").document["server"]

    os.kill(running["pid"], signal.SIGSTOP)
    try:
        people, programs = fresh("status"), fresh("status", "--json")
    finally:
        os.kill(running["pid"], signal.SIGCONT)

    assert f"server  running, but it does not answer, pid {running['pid']}\n" in people.out
    server = programs.document["server"]
    assert (server["running"], server["loading"], server["version"]) == (True, False, None)


def test_status_with_a_url_describes_that_redis(make_command):
    with PrivateServer({"maxmemory": "100mb"}) as server:
        command = make_command(FDSTORE_URL=server.url)
        command("put", "triage", "-", stdin=b"text")

        people, programs = command("status"), command("status", "--json")

    assert people.lines[0].split()[:2] == ["store", "answers,"]
    assert people.lines[0].split()[2] in ("Redis", "Valkey")
    assert "append-only file OFF" in people.out
    store = programs.document["store"]
    assert (store["url"], store["maxmemory_bytes"], store["trees"]) == (server.url, 104857600, 1)
    assert programs.document["server"]["running"] is False


def test_commands_warn_of_torn_logs_in_short_once_a_day_and_doctor_always(make_command):
    with PrivateServer({"appendonly": "yes", "aof-load-truncated": "yes"}) as server:
        command = make_command(FDSTORE_URL=server.url)
        first, second = command("ps"), command("ps")
        said = [command("doctor").out for _ in range(2)]

    [line] = [line for line in first.err.splitlines() if "aof-load-truncated" in line]
    assert len(line.replace(server.url, "redis://localhost:6379/0")) <= 120
    assert "fdstore doctor says why" in line
    assert "aof-load-truncated" not in second.err
    assert all("PROBLEM  torn log: aof-load-truncated is yes: after a crash" in each for each in said)


# --- upkeep


def age(store, *trees):
    """Set the last use of these trees to years ago."""
    with redis.Redis.from_url(store.url) as client:
        for tree in trees:
            client.hset(f"{store.prefix}:{{{tree}}}", "used_at", "1000000000")
            client.zadd(f"{store.prefix}:trees", {tree: 0})


def test_gc_removes_what_is_past_its_retention_and_says_so(command, store):
    nothing = command("gc")
    kept = store.process("kept")
    old = store.process("old")
    kept.create("x")
    old.create("four")
    age(store, "old")

    done = command("gc", "--json")

    assert nothing.out == "nothing to remove: no tree is past its retention\n"
    assert done.document == {"tree": "old", "outcome": "gone", "detail": "1 contents, 4 bytes"}
    assert [process.id for process in store.processes()] == ["kept"]


def test_a_dry_run_of_gc_states_for_each_tree_the_action_and_the_reason(command, store):
    store.run(processes.create_child(store.process("busy").handle, [], state="ready"))
    old = store.process("old")
    old.create("four")
    old.create("漢字")
    store.process("used")
    age(store, "busy", "old")
    with redis.Redis.from_url(store.url) as client:
        client.zadd(f"{store.prefix}:trees", {"used": 0, "only-a-name": 0})

    people = command("gc", "--dry-run")
    for_programs = command("gc", "--dry-run", "--json").documents

    said = {line.split()[0]: " ".join(line.split()[1:]) for line in people.lines[1:]}
    assert people.lines[0].split() == ["TREE", "WHAT", "WHY"]
    assert said.pop("used").startswith("stays in use until 2")
    assert said == {
        "busy": "stays busy.1 has not ended",
        "old": "would be removed 2 contents, 10 bytes",
        "only-a-name": "would be removed only its name is left",
    }
    assert {item["tree"]: item["outcome"] for item in for_programs} == {
        "busy": "held",
        "old": "due",
        "used": "kept",
        "only-a-name": "gone",
    }
    assert sorted(tree.id for tree in store.trees()) == ["busy", "old", "used"]


def test_doctor_finds_nothing_wrong_with_a_fresh_installation(fresh):
    before = fresh("doctor")
    fresh("up")
    after = fresh("doctor", "--json")

    assert (before.code, before.err) == (0, "")
    assert all(line.startswith("ok ") for line in before.lines)
    assert "not running" in before.out
    findings = {finding["subject"]: finding for finding in after.documents}
    assert {"python", "package redis", "data directory", "store", "eviction", "durability"} <= set(findings)
    assert all(finding["ok"] for finding in findings.values())


def test_an_unsafe_redis_is_refused_before_anything_is_created_and_remedies_are_named(make_command):
    with PrivateServer({"maxmemory-policy": "allkeys-lru"}) as server:
        refused = make_command(FDSTORE_URL=server.url)("put", "triage", "-", stdin=b"x")
        checked = make_command(FDSTORE_URL=server.url)("doctor")

    assert (refused.code, checked.code) == (1, 1)
    assert refused.err.startswith("fdstore: unsafe_store: ")
    assert "CONFIG SET maxmemory-policy noeviction" in refused.err
    assert "PROBLEM  eviction: its maxmemory-policy is allkeys-lru" in checked.out
    assert "-> set it with: fdstore redis-cli CONFIG SET maxmemory-policy noeviction" in checked.out
    assert "PROBLEM  durability: the append-only file is off" in checked.out


@pytest.mark.parametrize(
    ("environment", "mark", "code"),
    [
        ({}, "note", 0),
        ({"ANTHROPIC_API_KEY": "any"}, "problem", 1),
        ({"ANTHROPIC_API_KEY": "any", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}, "note", 0),
    ],
)
def test_doctor_names_a_proxy_that_cannot_be_used(make_command, environment, mark, code):
    ended = make_command(ALL_PROXY="socks5://127.0.0.1:7891", **environment)("doctor", "--json")

    [found] = [each for each in ended.documents if each["subject"] == "http requests"]
    assert "$ALL_PROXY is a SOCKS proxy" in found["said"]
    assert "unset ALL_PROXY" in found["said"] + found["advice"]
    assert ("note" if found["note"] else "problem", ended.code) == (mark, code)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"FDSTORE_REDIS_SERVER": "/no-such-server"}, "PROBLEM  redis-server: "),
        ({"FDSTORE_URL": CLOSED_PORT_URL}, "PROBLEM  store: Redis at redis://:***@127.0.0.1:1: "),
    ],
)
def test_doctor_promises_no_store_where_none_can_start_or_answers(make_command, environment, problem):
    ended = make_command(**environment)("doctor")

    assert ended.code == 1
    assert problem in ended.out
    assert "ok       store" not in ended.out


# --- redis-cli


@pytest.mark.thorough("two servers and many commands")
def test_a_problem_that_is_none_here_is_accepted_until_the_server_is_another(fresh):
    fresh("put", "triage", "-", stdin=b"text")
    assert fresh("doctor").code == 0
    fresh("redis-cli", "CONFIG", "SET", "aof-load-truncated", "yes")

    assert fresh("doctor").code == 1
    without_reason = fresh("doctor", "--accept", "torn log")
    unknown = fresh("doctor", "--accept", "fsync", "--reason", "we have batteries")
    accepted = fresh("doctor", "--accept", "torn log", "--reason", "we have batteries")
    again = fresh("doctor")

    assert without_reason.code == unknown.code == 2
    assert "its problems: 'torn log'" in " ".join(unknown.err.split())
    assert accepted.code == again.code == 0
    [line] = [line for line in again.lines if "torn log" in line]
    assert line.startswith("note ")
    assert line.endswith("; accepted: we have batteries")
    value = fresh("redis-cli", "HGET", "fdstore:let_pass", "torn log").out
    fresh("redis-cli", "HSET", "fdstore:let_pass", "torn log", value.strip().replace("Valkey", "Redis"))
    assert fresh("doctor").code == 1
    fresh("redis-cli", "HSET", "fdstore:let_pass", "torn log", "no JSON")
    assert fresh("doctor").code == 1
    fresh("redis-cli", "HSET", "fdstore:let_pass", "torn log", value.strip())
    assert fresh("doctor").code == 0
    assert fresh("doctor", "--withdraw", "torn log").code == 1
    assert fresh("doctor", "--withdraw", "torn log").code == 2


def test_no_worker_is_started_for_a_redis_that_takes_no_writes(make_command):
    with PrivateServer() as server, redis.Redis.from_url(server.url) as plain:
        plain.replicaof("127.0.0.1", 1)
        command = make_command(FDSTORE_URL=server.url)

        ended = command("up")

        assert ended.code == 1
        said = "Redis takes no writes (a replica of 127.0.0.1:1: it accepts no writes)"
        assert ended.err.startswith(f"fdstore: store_readonly: {said}")
        assert "worker  was not running" in command("down").out
