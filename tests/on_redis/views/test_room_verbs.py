"""The verbs that show and free memory, and read-only verbs on a Redis that refuses writes.

They run in this process: starting commands would take most of the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import redis
from click.testing import CliRunner

import fdstore
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import processes
from tests.thorough import thorough


class CommandResult:
    """Exit code and output of a command."""

    def __init__(self, url: str, args: tuple[str, ...], stdin: str) -> None:
        done = CliRunner().invoke(cli, list(args), input=stdin, env={"FDSTORE_URL": url})
        self.code, self.out, self.err = done.exit_code, done.stdout, done.stderr
        self.lines = self.out.split("\n")[:-1]


Command = Callable[..., CommandResult]


@pytest.fixture
def command(redis_url: str) -> Command:
    """`command("ls", "triage")`"""
    return lambda *args, stdin="": CommandResult(redis_url, args, stdin)


def test_du_shows_trees_then_processes_then_descriptors(command: Command, store: Store) -> None:
    proc = store.process("triage")
    proc.create("x" * 2_000_000, source="a log")
    proc.child(share=["fd:1"]).create("y")
    store.process("other").create("z")

    trees, parts, child = command("du"), command("du", "triage"), command("du", "triage.1")
    documents = [msgspec.json.decode(line) for line in command("du", "triage", "--json").lines]

    assert [line.split()[:3] for line in trees.lines[1:3]] == [["triage", "2.0", "MB"], ["other", "1", "B"]]
    assert trees.lines[3].startswith("2 trees with 2.0 MB; Redis uses ")
    assert ["triage.1", "open", "2", "2.0", "MB", "1", "B"] in [line.split() for line in parts.lines]
    assert ["fd:1", "2.0", "MB", "2", "sealed", "a", "log"] in [line.split() for line in parts.lines]
    assert [line.split()[0] for line in child.lines] == ["FD", "fd:1", "fd:2"]
    assert [next(iter(each.values())) for each in documents] == ["triage", "triage.1", "triage", "triage"]
    assert documents[-1]["bytes"] == 2_000_000


def test_holders_lists_the_processes_that_hold_a_content(command: Command, store: Store) -> None:
    proc = store.process("triage")
    proc.create("x")
    proc.child(share=["fd:1"])

    ended = command("holders", "triage", "1")
    documents = [msgspec.json.decode(line) for line in command("holders", "triage", "1", "--json").lines]

    assert [line.split() for line in ended.lines[1:]] == [
        ["triage", "open", "fd:1"],
        ["triage.1", "open", "fd:1"],
    ]
    assert documents[1] == {"process": "triage.1", "state": "open", "fd": "fd:1"}
    assert command("holders", "triage", "9").code == 1


def test_rm_drops_descriptors_of_a_killed_process(command: Command, store: Store) -> None:
    proc = store.process("triage")
    proc.create("x")
    assert command("kill", "triage").code == 0

    ended = command("rm", "triage", "1")

    assert (ended.code, ended.lines, ended.err) == (0, ["closed fd:1"], "")
    assert store.tree("triage").bytes == 0


def test_rm_removes_a_tree_only_after_confirmation(command: Command, store: Store) -> None:
    store.process("triage").create("x")
    store.process("other")

    refused = command("rm", "--tree", "triage")
    trees = [tree.id for tree in store.trees()]
    done = command("rm", "--tree", "triage", "--yes")
    again = command("rm", "--tree", "triage", "--yes", "--json")

    assert (refused.code, "--yes" in refused.err, trees) == (2, True, ["other", "triage"])
    assert (done.code, done.lines) == (0, ["removed triage: 1 content"])
    assert "a new triage goes on counting" in done.err
    assert (again.code, "not_found" in again.err) == (1, True)
    assert [tree.id for tree in store.trees()] == ["other"]


def test_rm_keeps_a_tree_with_a_waiting_agent_without_kill(command: Command, store: Store) -> None:
    proc = store.process("triage")
    proc.create("x")
    store.run(processes.create_child(proc.handle, ["fd:1"], state="ready"))

    refused = command("rm", "--tree", "triage", "--yes")
    killed = command("rm", "--tree", "triage", "--yes", "--kill", "--json")

    assert refused.code == 1
    assert refused.err.startswith("fdstore: conflict: the tree triage is in use: triage.1 is ready; ")
    dropped = {"tree": "triage", "contents": 1, "cancelled": ["triage", "triage.1"]}
    assert msgspec.json.decode(killed.out) == dropped
    assert store.trees() == []


@pytest.mark.parametrize(
    "args",
    [["triage"], [], ["triage", "1", "--tree", "x"], ["triage", "1", "--yes"], ["triage", "1", "--kill"]],
)
def test_rm_with_ambiguous_arguments_is_a_usage_error(
    command: Command, store: Store, args: list[str]
) -> None:
    store.process("triage").create("x")

    assert command("rm", *args).code == 2
    assert store.tree("triage").fds == 1


# --- looking where nothing may be made


@pytest.fixture(scope="module")
def unsafe_redis() -> Iterator[str]:
    """A Redis with a tree that evicts, is full, and refuses writes."""
    with PrivateServer() as server:
        with fdstore.connect(server.url) as store:
            proc = store.process("triage")
            proc.create("one\ntwo\nthree\n" * 1000)
            proc.child(share=["fd:1"])
            store.run(processes.end(proc.handle, "failed", release=False))
        with redis.Redis.from_url(server.url) as client:
            client.hset("fdstore:{triage}", "used_at", "1000000000")
            client.config_set("maxmemory-policy", "volatile-ttl")
            client.config_set("maxmemory", "1")
            client.replicaof("127.0.0.1", "1")
        yield server.url


@pytest.mark.parametrize(
    "args",
    [
        *("ps", "ps triage", "ls triage", "stat triage 1", "read triage 1#L2", "cat triage 1"),
        *("search triage 1 two", "tail triage 1", "export triage 1 out.txt", "du", "du triage"),
        *("holders triage 1", "status", "limits", "gc --dry-run"),
    ],
)
def test_read_only_verbs_are_never_refused(
    unsafe_redis: str, args: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # of export
    ended = CommandResult(unsafe_redis, tuple(args.split()), "")

    assert ended.code == 0, ended.err
    assert ended.out
    assert ended.err.startswith("fdstore: unsafe_store: ")


def test_doctor_deep_works_on_a_redis_that_refuses_writes(unsafe_redis: str) -> None:
    ended = CommandResult(unsafe_redis, ("doctor", "--deep"), "")

    assert "PROBLEM  eviction: " in ended.out
    assert "ok       trees: 1 was read" in ended.out


@pytest.mark.parametrize(
    "args",
    [
        "put triage -",
        *thorough("each waits for 10 s", "kill triage.1", "rm triage 1", "rm --tree triage --yes"),
    ],
)
def test_writing_verbs_are_refused_on_an_unsafe_redis_with_the_reason(unsafe_redis: str, args: str) -> None:
    ended = CommandResult(unsafe_redis, tuple(args.split()), "x")

    assert ended.code == 1
    assert "unsafe_store" in ended.err
    assert args.startswith("put") or "store_readonly" in ended.err
