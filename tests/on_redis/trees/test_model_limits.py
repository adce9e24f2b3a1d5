"""Limits of model calls and tokens per tree, in all and per day, stop a runaway spawner, with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from fdstore import TreeLimits
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import Bundle, LinkedProgram, Program
from fdstore.client import Store
from fdstore.errors import SpawnLimit
from fdstore.model.records import TOKEN_COUNTS, TokenUsage
from fdstore.store.processes import journal, processes
from fdstore.store.trees import ceilings
from fdstore.testing import Usage, call, say, turn
from fdstore.testing.requests import Request
from tests.on_redis.running_agents import Agents, running, tool
from tests.thorough import thorough

Execute = Callable[..., Any]

LIMIT = 30


USAGE = Usage(input_tokens=90, output_tokens=10)


def runaway(request: Request) -> Any:
    """A model whose agents always spawn two more of themselves."""
    return turn(*(call("spawn", program_name="again", query="and again") for _ in range(2)), usage=USAGE)


@contextmanager
def spawner(store: Store, folder: Path, limits: TreeLimits) -> Iterator[Agents]:
    with running(store, runaway, folder) as agents:
        program = Program(
            name="again",
            model="any",
            system="Go on.",
            tools=("spawn",),
            linked={"again": LinkedProgram(key="again")},
            tree_limits=limits,
        )
        launch_root(store, Bundle(root="again", programs={"again": program}), "go", "again")
        yield agents


def run_concurrently(agents: Agents, root: str, workers: int) -> None:
    """Run all ready processes of the tree concurrently, as several workers would."""
    while ready := [member.id for member in agents.store.tree(root).members if member.state == "ready"]:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(agents.attempt, ready))


@pytest.mark.parametrize("workers", [*thorough("alone", 1), 8])
def test_a_recursive_spawner_stops_at_the_limit_and_every_agent_records_why(
    store: Store, tmp_path: Path, workers: int
) -> None:
    limits = TreeLimits(tree_model_calls_per_day=LIMIT, tree_live=200, tree_depth=100)

    with spawner(store, tmp_path, limits) as agents:
        run_concurrently(agents, "again", workers)
        calls = len(agents.model.requests)

    tree = store.tree("again")
    assert LIMIT <= calls < LIMIT + workers
    assert (tree.model_calls, tree.live) == (calls, 0)
    assert {member.state for member in tree.members} == {"failed"}
    reason = "tree_model_calls_per_day: this tree has used the 30"
    assert all((member.reason or "").startswith(reason) for member in tree.members)


@pytest.mark.parametrize("workers", [*thorough("alone", 1), 8])
@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ({"tree_token_budget": LIMIT * 100}, "tree_token_budget: this tree has used {tokens} tokens of 3000"),
        ({"tree_model_calls": LIMIT}, "tree_model_calls: this tree has used {calls} answers of models of 30"),
    ],
    ids=["tokens", "calls"],
)
def test_a_recursive_spawner_stops_at_the_budget_of_its_tree(
    store: Store, tmp_path: Path, limit: dict[str, int], reason: str, workers: int
) -> None:
    with spawner(store, tmp_path, TreeLimits(**limit, tree_live=200, tree_depth=100)) as agents:
        run_concurrently(agents, "again", workers)
        calls = len(agents.model.requests)

    tree = store.tree("again")
    assert LIMIT <= calls < LIMIT + workers
    assert (tree.all_model_calls, tree.all_tokens, tree.live) == (calls, calls * 100, 0)
    assert tree.all_tokens == sum(member.tokens for member in tree.members)
    assert {member.state for member in tree.members} == {"failed"}
    # those that ended before the last answers under way name what was used by then
    reasons = {member.reason or "" for member in tree.members}
    assert reasons <= {reason.format(calls=n, tokens=n * 100) for n in range(LIMIT, calls + 1)}


def test_no_agent_is_begun_in_a_tree_that_has_used_its_budget(store: Store) -> None:
    proc = store.process("t", limits=TreeLimits(tree_token_budget=100))
    store.run(journal.append(proc.handle, 0, ["{}"], usage=TokenUsage(input_tokens=100)))

    with pytest.raises(SpawnLimit, match="has used its tree_token_budget of 100; no new agent can begin"):
        store.run(processes.create_child(proc.handle, [], state="ready"))
    assert proc.child().id == "t.1"  # which no model runs


@pytest.mark.parametrize("name", ["tree_token_budget", "tree_model_calls"])
def test_a_ceiling_lowers_the_budget_of_a_tree_that_has_none(store: Store, name: str) -> None:
    store.process("t")
    store.run(ceilings.put("fdstore", name, "7"))

    assert getattr(store.tree("t").limits, name) == 7
    store.run(ceilings.put("fdstore", name, None))
    assert getattr(store.tree("t").limits, name) is UNSET


def test_the_operator_can_stop_a_running_spawner(store: Store, tmp_path: Path) -> None:
    with spawner(
        store, tmp_path, TreeLimits(tree_live=10_000, tree_processes=10_000, tree_depth=100)
    ) as agents:
        agents.attempt("again")
        for process in [m.id for m in store.tree("again").members if m.state == "ready"]:
            agents.attempt(process)
        before = len(agents.model.requests)
        store.run(ceilings.put("fdstore", "tree_model_calls_per_day", "0"))
        agents.run_all("again")

        assert len(agents.model.requests) == before == 3
    assert store.tree("again").live == 0


def test_tokens_count_in_out_and_cached(store: Store, tmp_path: Path) -> None:
    usage = Usage(
        input_tokens=100, output_tokens=20, cache_creation_input_tokens=3, cache_read_input_tokens=4
    )
    script = [turn(call("echo", words="a"), usage=usage), turn(say("never asked for"), usage=usage)]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),), tree_limits=TreeLimits(tree_tokens_per_day=127))
        agents.attempt("solo")

        assert len(agents.model.requests) == 1
        assert agents.record().state == "failed"
        assert agents.record().reason.startswith("tree_tokens_per_day:")
    assert (store.tree("solo").model_calls, store.tree("solo").tokens) == (1, 127)


def test_an_agent_below_its_limit_finishes(store: Store, tmp_path: Path) -> None:
    with running(store, [call("echo", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),), tree_limits=TreeLimits(tree_model_calls_per_day=2))
        agents.attempt("solo")

        assert agents.answer() == "Done."
        assert (agents.record().state, agents.record().exit_code) == ("exited", 0)


def test_a_resumed_attempt_checks_the_limit_before_it_calls_the_model(store: Store, tmp_path: Path) -> None:
    with running(store, [call("echo", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(tool("echo"),), tree_limits=TreeLimits(tree_model_calls_per_day=1))
        # the previous attempt stored the result and was lost before it checked the limit
        # before the claim and before each step
        stop = iter([False, False, False, False, True])
        flag = type("Flag", (), {"is_set": lambda self: next(stop, True)})()
        agents.attempt("solo", stopping=flag)
        agents.attempt("solo")

        assert len(agents.model.requests) == 1
        assert (agents.record().reason or "").startswith("tree_model_calls_per_day")


def test_counts_restart_each_day_and_only_the_previous_day_is_kept(
    store: Store, tmp_path: Path, execute: Execute
) -> None:
    today = int(execute("TIME")[0]) // 86_400
    for name, day, yesterday in (("a", today - 1, 7), ("b", today - 5, 0)):
        with running(store, [say("Done.")], tmp_path) as agents:
            program = Program(name=name, model="any", tree_limits=TreeLimits(tree_model_calls_per_day=7))
            launch_root(store, Bundle(root=name, programs={name: program}), "go", name)
            execute("HSET", f"fdstore:{{{name}}}", "usage_day", day, "model_calls", 7, "tokens", 9)
            agents.attempt(name)

        tree = store.tree(name)
        assert (tree.members[0].state, tree.model_calls, tree.usage_day) == ("exited", 1, today)
        assert execute("HGET", f"fdstore:{{{name}}}", "model_calls_yesterday") == b"%d" % yesterday


def test_an_answer_whose_reply_was_lost_is_counted_once(store: Store) -> None:
    proc = store.process("t")
    usage = TokenUsage(input_tokens=4, output_tokens=1, cache_read_tokens=3, cache_write_tokens=1)
    for position in (0, 0, 1):
        added = store.run(journal.append(proc.handle, position, ["{}"], usage=usage))

    tree = store.tree("t")
    assert added.length == 2
    assert (tree.model_calls, tree.tokens) == (2, 10)
    assert [getattr(tree.members[0], name) for name in TOKEN_COUNTS] == [8, 2, 6, 2]
