"""A damaged record affects only its own tree: whatever its keys and fields hold, reading, sweeping, claiming
and killing either work or raise a typed error in bounded time, and all other trees keep working.

A normal run tests a random sample of the cases (seed DAMAGE_SEED); `make chaos` tests all of them.
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
from click.testing import CliRunner

from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.runtime.run_process import run_process
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.files.permissions import Permissions
from fdstore.store.clock import redis_now
from fdstore.store.processes import processes
from fdstore.store.views import worker_registry
from fdstore.testing import ScriptedModel, say
from fdstore_workers.sweeper import collect_due, sweep
from tests.on_redis.damage import Case, DamagedStore, cases
from tests.waiting import PATIENCE_S

SAMPLE = 30
FD = "fd:1"

# processes that the sweep must find in an intact tree: ready and lost ones
DUE = {"", ".1", ".2", ".3", ".4.1", ".6"}


@pytest.fixture(scope="module")
def model() -> Iterator[AnthropicModel]:
    with ScriptedModel(lambda _: say("Done.")) as scripted:
        client = AnthropicModel(api_key=scripted.api_key, base_url=scripted.base_url)
        yield client
        client.close()


def require_typed_result(what: str, work: Callable[[], Any]) -> None:
    """Fail if `work` takes too long or raises anything but a typed error."""
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
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), f"{what} did not end within {PATIENCE_S:g} s"
    if failed:
        raise AssertionError(f"{what} raised {failed[0]!r}") from failed[0]


def look(damaged_store: DamagedStore, command: str) -> None:
    """Run a command line; it may fail with a typed error, never with a traceback."""
    url = damaged_store.store.url
    done = CliRunner().invoke(cli, ["--url", url, *command.split()])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code == 1:
        # not in `output`, where the error may follow a text that does not end its line
        said = f"{done.stdout}\n{done.stderr}"
        assert re.search(r'^(fdstore: |\{"error":)', said, re.MULTILINE), said


LOOKS = [
    *("ps", "ps --json", "ps hurt", "status", "gc --dry-run", "gc --dry-run --json"),
    *("ls hurt", "ls hurt.1 --json", "stat hurt fd:1", "stat hurt fd:3", "stat hurt fd:7"),
    *("cat hurt fd:1", "cat hurt fd:2", "cat hurt fd:3", "cat hurt fd:6", "cat hurt ref:plan"),
    *("read hurt fd:2#P300-560", "read hurt fd:1#L5-9", "read hurt fd:2#C9-99"),
    *("search hurt line fd:1", "tail hurt fd:1", "tail hurt fd:5"),
]


def check_all(
    damaged_store: DamagedStore, model: AnthropicModel, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    """Run every operation on the store damaged by this case."""
    store = damaged_store.store
    damaged_store.restore()
    before = {tree: store.tree(tree) for tree in ("alpha", "omega")}
    damaged_store.damage(case)
    reports: list[str] = []

    def report(what: str, problem: str, trace: BaseException | None = None) -> None:
        assert trace is None, f"the sweep met a defect: {problem}"
        reports.append(what)

    for command in LOOKS:
        require_typed_result(command, lambda command=command: look(damaged_store, command))
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

    require_typed_result("the sweep", sweep_all)
    for tree in before:
        assert {f"{tree}{end}" for end in DUE} <= set(woken), f"{tree} was not swept: {woken}"

    with caplog.at_level(logging.ERROR, "fdstore"):
        for end in ("", ".2", ".3", ".4", ".4.1", ".6"):
            require_typed_result(f"running hurt{end}", lambda end=end: run_one(store, model, f"hurt{end}"))
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR], caplog.text
    assert run_one(store, model, "alpha.2") == "ended"

    require_typed_result("kill", lambda: look(damaged_store, "kill hurt"))
    require_typed_result("kill below", lambda: store.run(processes.cancel("fdstore", "hurt.4")))
    done = store.run(processes.cancel("fdstore", "omega"))
    assert (done.state, done.unreadable) == ("cancelled", ())
    require_typed_result("gc", lambda: look(damaged_store, "gc"))
    assert store.process("after").create("text").fd == "fd:1"
    assert store.run(worker_registry.workers("fdstore")) == []


def run_one(store: Store, model: AnthropicModel, process: str) -> str:
    return run_process(
        store,
        process,
        worker="there:2",
        model=lambda _: model,
        wake=lambda _: None,
        permissions=Permissions(),
    )


def sample_cases(damaged_store: DamagedStore) -> list[Case]:
    every = list(cases(damaged_store.client))
    seed = os.environ.get("DAMAGE_SEED", "1")
    print(f"DAMAGE_SEED={seed}: {SAMPLE} of {len(every)} cases")
    return random.Random(seed).sample(every, SAMPLE)


@pytest.mark.thorough("single damages are tested")
def test_a_sample_of_damaged_records_affects_no_other_tree(
    shared_damaged_store: DamagedStore, model: AnthropicModel, caplog: pytest.LogCaptureFixture
) -> None:
    damaged_store = shared_damaged_store
    damaged_store.restore()
    for case in sample_cases(damaged_store):
        try:
            check_all(damaged_store, model, case, caplog)
        except BaseException:
            print(f"damaged: {case.name}")
            raise


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_no_damaged_record_affects_another_tree(
    shared_damaged_store: DamagedStore, model: AnthropicModel, caplog: pytest.LogCaptureFixture
) -> None:
    damaged_store = shared_damaged_store
    damaged_store.restore()
    failed = []
    every = list(cases(damaged_store.client))
    for case in every:
        caplog.clear()
        try:
            check_all(damaged_store, model, case, caplog)
        except AssertionError as error:
            failed.append(f"{case.name}: {str(error)[:300]}")
            print(failed[-1], flush=True)
    print(f"{len(every)} cases, {len(failed)} failed")
    assert not failed, "\n".join(failed)
