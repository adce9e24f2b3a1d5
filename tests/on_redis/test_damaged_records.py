"""One bad record harms one tree: whatever a key or a field of it holds, looking, sweeping, claiming and
killing either work there or raise a typed error in bounded time, and all other trees go on.

A normal run takes a sample of all cases (DAMAGE_SEED names another one); `make chaos` takes them all.
"""

from __future__ import annotations

import logging
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from click.testing import CliRunner

import fdstore
from fdstore.agent.models.anthropic import AnthropicModel
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.local.redis_server import PrivateServer
from fdstore.permissions import Permissions
from fdstore.runtime.run_process import run_process
from fdstore.store import leases, processes
from fdstore.store.clock import redis_now
from fdstore.testing import ScriptedModel, say
from fdstore_workers.sweeper import collect_due, sweep
from tests.on_redis.damage import Case, Town, cases

HANG_S = 20.0
SAMPLE = 30
FD = "fd:1"

# what the sweep has to find in a tree that is well: what is ready, and what was lost
DUE = {"", ".1", ".2", ".3", ".4.1", ".6"}


@pytest.fixture(scope="module")
def town(redis_server: PrivateServer) -> Iterator[Town]:
    redis_server.start()
    with redis.Redis.from_url(redis_server.url) as client, fdstore.connect(redis_server.url) as store:
        yield Town(store, client)
        client.flushall()


@pytest.fixture(scope="module")
def model() -> Iterator[AnthropicModel]:
    with ScriptedModel(lambda _: say("Done.")) as scripted:
        client = AnthropicModel(api_key=scripted.api_key, base_url=scripted.base_url)
        yield client
        client.close()


def in_bounded_time(what: str, work: Callable[[], Any]) -> None:
    """Fails if it takes too long, or raises anything but a typed error."""
    failed: list[BaseException] = []

    def body() -> None:
        try:
            work()
        except FDStoreError:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            failed.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(HANG_S)
    assert not thread.is_alive(), f"{what} did not end within {HANG_S:g} s"
    if failed:
        raise AssertionError(f"{what} raised {failed[0]!r}") from failed[0]


def look(town: Town, command: str) -> None:
    """A command as a person gives it; it may fail with a typed error, never with a traceback."""
    url = town.store.url
    done = CliRunner().invoke(cli, ["--url", url, *command.split()])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code == 1:
        assert re.search(r'^(fdstore: |\{"error":)', done.output, re.MULTILINE), done.output


LOOKS = [
    *("ps", "ps --json", "ps hurt", "status", "gc --dry-run", "gc --dry-run --json"),
    *("ls hurt", "ls hurt.1 --json", "stat hurt fd:1", "stat hurt fd:3", "stat hurt fd:7"),
    *("cat hurt fd:1", "cat hurt fd:2", "cat hurt fd:3", "cat hurt fd:6", "cat hurt ref:plan"),
    *("read hurt fd:2#P300-560", "read hurt fd:1#L5-9", "read hurt fd:2#C9-99"),
    *("search hurt line fd:1", "tail hurt fd:1", "tail hurt fd:5"),
]


def check_all(town: Town, model: AnthropicModel, case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """One case: everything that is done with a store is done with the damaged one."""
    store = town.store
    town.restore()
    before = {tree: store.tree(tree) for tree in ("alpha", "omega")}
    town.damage(case)
    reports: list[str] = []

    def report(what: str, problem: str, trace: BaseException | None = None) -> None:
        assert trace is None, f"the sweep met a defect: {problem}"
        reports.append(what)

    for command in LOOKS:
        in_bounded_time(command, lambda command=command: look(town, command))
    survey = store.survey()
    others = {tree.id: tree for tree in survey.trees if tree.id != "hurt"}
    assert others.keys() == before.keys()
    for tree, record in before.items():
        assert others[tree].members == record.members

    woken: list[str] = []
    later = store.run(redis_now()) + 3600

    def sweep_all() -> None:
        sweep(store, woken.append, later, None, report)
        collect_due(store, report)

    in_bounded_time("the sweep", sweep_all)
    for tree in before:
        assert {f"{tree}{end}" for end in DUE} <= set(woken), f"{tree} was not swept: {woken}"

    with caplog.at_level(logging.ERROR, "fdstore"):
        for end in ("", ".2", ".3", ".4", ".4.1", ".6"):
            in_bounded_time(f"running hurt{end}", lambda end=end: run_one(store, model, f"hurt{end}"))
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR], caplog.text
    assert run_one(store, model, "alpha.2") == "ended"

    in_bounded_time("kill", lambda: look(town, "kill hurt"))
    in_bounded_time("kill below", lambda: store.run(processes.cancel("fdstore", "hurt.4")))
    done = store.run(processes.cancel("fdstore", "omega"))
    assert (done.state, done.unreadable) == ("cancelled", ())
    in_bounded_time("gc", lambda: look(town, "gc"))
    assert store.process("after").create("text").fd == "fd:1"
    assert store.run(leases.workers("fdstore")) == []


def run_one(store: Store, model: AnthropicModel, process: str) -> str:
    return run_process(
        store,
        process,
        worker="there:2",
        model=lambda: model,
        wake=lambda _: None,
        permissions=Permissions(),
    )


def sampled(town: Town) -> list[Case]:
    every = list(cases(town.client))
    seed = os.environ.get("DAMAGE_SEED", "1")
    print(f"DAMAGE_SEED={seed}: {SAMPLE} of {len(every)} cases")
    return random.Random(seed).sample(every, SAMPLE)


def test_a_sample_of_all_damaged_records_harms_no_other_tree(
    town: Town, model: AnthropicModel, caplog: pytest.LogCaptureFixture
) -> None:
    town.restore()
    for case in sampled(town):
        try:
            check_all(town, model, case, caplog)
        except BaseException:
            print(f"damaged: {case.name}")
            raise


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_damaged_record_harms_no_other_tree(
    town: Town, model: AnthropicModel, caplog: pytest.LogCaptureFixture
) -> None:
    town.restore()
    failed = []
    every = list(cases(town.client))
    for case in every:
        caplog.clear()
        try:
            check_all(town, model, case, caplog)
        except AssertionError as error:
            failed.append(f"{case.name}: {str(error)[:300]}")
            print(failed[-1], flush=True)
    print(f"{len(every)} cases, {len(failed)} failed")
    assert not failed, "\n".join(failed)
