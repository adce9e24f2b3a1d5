"""Finding processes and contents, by names and by words: `fdstore find`, and the filters of `fdstore ps`."""

from __future__ import annotations

import signal

import pytest
import redis

import fdstore
from fdstore.store.processes import processes
from fdstore.store.views import finding
from fdstore.tools.process_task import SpawnTask, encode_task


@pytest.fixture
def trees(store: fdstore.Store) -> fdstore.Store:
    """`triage` with two sources and a child that holds one of them, and `nightly-build`, which has ended."""
    triage = store.process("triage")
    log = triage.create("x" * 5000, source="deploy/Build.log")
    triage.create("short", source="notes.md")
    triage.child(share=[log.fd])
    nightly = store.process("nightly-build")
    nightly.create("last words", source="stdout")
    nightly.end()
    return store


def test_find_lists_processes_and_contents_by_a_part_of_their_names(command, trees):
    found = command("find", "BUILD")
    documents = command("find", "build", "--json").documents

    assert found.code == 0, found.err
    assert [line.split() for line in found.lines] == [
        ["PROCESS", "STATE", "PROGRAM"],
        ["nightly-build", "exited", "-"],
        [],
        ["PROCESS", "FD", "STATE", "SIZE", "SOURCE"],
        ["triage", "fd:1", "sealed", "5.0", "kB", "deploy/Build.log"],
        ["triage.1", "fd:1", "sealed", "5.0", "kB", "deploy/Build.log"],
    ]
    assert [(each.get("id"), each.get("fd")) for each in documents] == [
        ("nightly-build", None),
        (None, "fd:1"),
        (None, "fd:1"),
    ]


def test_a_glob_matches_whole_names_and_nothing_found_is_exit_code_1(command, trees):
    assert [line.split()[-1] for line in command("find", "*.md").lines[1:]] == ["notes.md"]
    nothing = command("find", "*.lo")
    assert (nothing.code, nothing.out, nothing.err) == (1, "", "fdstore: nothing found\n")
    assert command("find", "*.lo", "--json") == (1, b"", "")


def test_find_lists_where_the_words_of_tasks_answers_and_errors_are(command, trees):
    triage = trees.process("triage").handle
    brief = encode_task(SpawnTask(query="Which orders were refunded?"))
    done = trees.run(processes.create_child(triage, [], brief=brief))
    trees.run(processes.end(done, answer="No order of May was refunded"))
    failed = trees.run(processes.create_child(triage, [], brief=brief))
    trees.run(processes.end(failed, "failed", exit_code=None, reason="ValueError: no such column"))

    words = command("find", "refunded Order")
    error = command("find", "valueerror", "--json")
    source = command("find", "deploy log")

    assert (words.code, words.err) == (0, "")
    assert [line.split() for line in words.lines] == [
        ["PROCESS", "STATE", "FOUND", "IN", "PROGRAM"],
        ["triage.2", "exited", "task", "-"],
        ["Which", "orders", "were", "refunded?"],
        ["triage.2", "exited", "answer", "-"],
        ["No", "order", "of", "May", "was", "refunded"],
        ["triage.3", "failed", "task", "-"],
        ["Which", "orders", "were", "refunded?"],
    ]
    assert words.lines[2].startswith("    Which")
    assert error.document == {
        "process": "triage.3",
        "found_in": "error",
        "fd": None,
        "state": "failed",
        "program": None,
        "excerpt": {"text": "ValueError: no such column", "marks": [[0, 10]]},
    }
    assert source.lines[1].split() == ["triage", "open", "source", "of", "fd:1", "-"]
    assert source.lines[2] == "    deploy/Build.log"
    command.environment.pop("NO_COLOR")
    painted = command.on_terminal("find", "refunded Order").out
    assert "Which \x1b[1;31morder\x1b[ms were \x1b[1;31mrefunded\x1b[m?" in painted
    assert command("find", "refunded never").code == 1


def test_a_damaged_table_is_named_and_hides_nothing_else(trees):
    with redis.Redis.from_url(trees.url) as client:
        client.set(f"{trees.prefix}:{{nightly-build}}:nightly-build:fds", "not a hash")

    found = trees.run(finding.find(trees.prefix, "log"))

    assert [each.process for each in found.descriptors] == ["triage", "triage.1"]
    assert any("nightly-build" in each.what for each in found.unreadable)


def test_ps_selects_by_state_program_and_time_and_sorts(command, trees):
    def ids(*options: str) -> list[str]:
        return [each["id"] for each in command("ps", "--json", *options).documents]

    assert ids() == ["triage", "triage.1"]
    assert ids("-a") == ["nightly-build", "triage", "triage.1"]
    assert ids("nightly-build") == ids("--state", "exited") == ["nightly-build"]
    assert ids("--state", "exited", "--state", "open") == ["nightly-build", "triage", "triage.1"]
    assert ids("--program", "none-such") == []
    assert ids("--since", "1h", "--sort", "started")[0] == "nightly-build"
    assert ids("--sort", "bytes")[0] == "triage"
    head, first, *_ = command("ps", "--sort", "bytes").lines
    assert head.split() == ["PROCESS", "STATE", "PROGRAM", "STARTED", "ENDED", "BYTES", "DETAIL"]
    assert "5.0 kB" in first
    assert command("ps", "--state", "failed") == (0, b"", "")
    wrong = command("ps", "--since", "soon")
    assert wrong.code == 2
    assert "'soon' is not a duration such as 90s, 30m, 12h or 7d" in wrong.err


def test_ps_says_on_a_terminal_that_ended_processes_are_left_out(command, trees):
    some = command.on_terminal("ps", err_too=True)
    assert command("kill", "triage").code == 0
    none = command.on_terminal("ps", err_too=True)

    assert some.lines[0].startswith("PROCESS")
    assert some.lines[-1] == "1 process ended: fdstore ps -a"
    assert none.lines == ["all have ended: 3 processes; fdstore ps -a"]


def test_a_tree_of_the_demo_is_named_to_who_looks_for_it_under_another_prefix(fresh):
    fresh("put", "monitoring", "-", "--prefix", "fdstore-demo", stdin=b"text")

    missing = fresh("ls", "monitoring")

    assert missing.code == 1
    assert "the prefix fdstore-demo has a tree monitoring: --prefix fdstore-demo" in missing.err
    assert "not_found" in missing.err
    assert "fdstore-demo" not in fresh("ls", "another").err
    shown = fresh.on_terminal("ps", err_too=True).lines
    assert shown[-1] == "the prefix fdstore-demo has monitoring: --prefix fdstore-demo"


def test_an_empty_prefix_says_how_to_begin_and_which_other_one_has_trees(make_command, store):
    with fdstore.connect(store.url, prefix="fdstore-demo") as demo:
        for left in demo.trees():  # of other tests of demonstrations
            demo.drop_tree(left.id, kill=True)
        demo.process("monitoring")
    empty = make_command(FDSTORE_URL=store.url, FDSTORE_PREFIX="empty")
    there = "the prefix fdstore-demo has monitoring: --prefix fdstore-demo"

    assert empty("ps").err.splitlines() == [
        "there are no processes yet; `fdstore put PROC FILE` creates the first",
        there,
    ]
    assert empty("ps", "--json") == (0, b"", "")
    assert empty("find", "x").err == f"fdstore: nothing found\nfdstore: {there}\n"
    assert there in empty("status").out
    with fdstore.connect(store.url, prefix="fdstore-demo") as demo:
        demo.drop_tree("monitoring", kill=True)


def test_ps_with_watch_shows_new_processes_until_it_is_interrupted(command, trees):
    with command.start("ps", "--watch") as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        trees.process("newcomer")
        assert any(b"newcomer" in line for line in watching.stdout)
        watching.send_signal(signal.SIGINT)
        watching.communicate()

    assert first.startswith(b"PROCESS")
    assert watching.returncode == 130
