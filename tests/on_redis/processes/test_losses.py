"""What is left of attempts that wrote nothing: when and how each was lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from fdstore.agents.loop.program_loader import Limits
from fdstore.client import Store
from fdstore.inspector.reading.conversation import conversation
from fdstore.inspector.reading.narrate import narrate
from fdstore.inspector.web.journal_tracks import JournalTracks
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases
from fdstore.store.processes.journal import read_window
from fdstore.testing import say
from fdstore.wire.script_constants import MAX_LOSSES_KEPT
from fdstore_workers.supervisor import HeldProcess
from fdstore_workers.sweeper import sweep
from fdstore_workers.worker import release_held
from tests.on_redis.running_agents import running

Execute = Callable[..., Any]

RECORD = "fdstore:{solo}:solo"
CLAIMS = count()


def crash(store: Store, worker: str) -> None:
    """Claim the process for a worker that sees the process die that runs it."""
    claim = f"claim-{next(CLAIMS)}"
    store.run(leases.claim(process_keys("fdstore", "solo"), worker, claim))
    release_held(store, lambda _: None, [HeldProcess(1, "solo", claim)])


def shown(store: Store, **more: Any) -> list[tuple[str, str]]:
    page = store.run(conversation("fdstore", "solo", **more))
    return [(each.kind, narrate(each).head) for each in page.entries]


def test_each_loss_of_a_poisonous_process_is_told_although_no_record_followed(
    store: Store, tmp_path: Path
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch(limits=Limits(max_losses=2))
        crash(store, "one:7-a")
        crash(store, "two:8-b")

    assert shown(store) == [
        ("task", ""),
        ("loss", "loss 1: the process that ran it died; attempt 1 on one:7-a"),
        ("loss", "loss 2: the process that ran it died; attempt 2 on two:8-b"),
        ("end", "failed"),
    ]
    process = agents.record()
    [track] = store.run(JournalTracks().read("fdstore", [process])).values()
    losses = [span.text for span in track.spans(process) if span.kind == "loss"]
    assert losses == ["loss 1: the process that ran it died", "loss 2: the process that ran it died"]


def test_a_loss_stands_before_the_record_that_followed_it(store: Store, tmp_path: Path) -> None:
    with running(store, {"SOLO": [say("Done.")]}, tmp_path) as agents:
        agents.launch()
        crash(store, "one:7-a")
        agents.expire("solo")
        store.run(leases.claim(process_keys("fdstore", "solo"), "two:8-b"))
        agents.expire("solo")
        sweep(store, agents.woken.append)
        agents.attempt("solo")

    page = store.run(conversation("fdstore", "solo"))
    assert [(each.kind, each.losses) for each in page.entries][:4] == [
        ("task", 0),
        ("loss", 1),
        ("loss", 2),
        ("attempt", 2),
    ]
    assert narrate(page.entries[2]).head == (
        "loss 2: its worker did not renew its lease; attempt 2 on two:8-b"
    )
    assert page.entries[1].at is not None
    assert page.entries[1].position == page.entries[3].position
    whole = [(each.position, each.part) for each in page.entries]
    assert len(set(whole)) == len(whole)
    later = store.run(conversation("fdstore", "solo", page.entries[3].position + 1))
    assert "loss" not in {each.kind for each in later.entries}


def test_who_follows_a_conversation_sees_each_loss_once(store: Store, tmp_path: Path) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch()
        crash(store, "one:7-a")
        page = store.run(conversation("fdstore", "solo"))
        assert [each.losses for each in page.entries] == [0, 1]
        crash(store, "two:8-b")

        new = store.run(conversation("fdstore", "solo", page.next, after_loss=page.process.losses))

        assert [each.losses for each in new.entries] == [2]


def test_only_the_last_losses_are_kept_and_a_damaged_field_is_replaced(
    store: Store, tmp_path: Path, execute: Execute
) -> None:
    with running(store, [], tmp_path) as agents:
        agents.launch(limits=Limits(max_losses=100))
        execute("HSET", RECORD, "recent_losses", "x " * 100_000)
        crash(store, "a worker with blanks\n:7")
        assert [each.worker for each in read(store)] == ["a_worker_with_blanks_:7"]

        for _ in range(MAX_LOSSES_KEPT + 4):
            crash(store, "w" * 1000)

        assert [each.number for each in read(store)] == list(range(6, MAX_LOSSES_KEPT + 6))
        assert len(execute("HGET", RECORD, "recent_losses")) < 400 * MAX_LOSSES_KEPT


def read(store: Store) -> Any:
    return store.run(read_window("fdstore", "solo", 0, 1)).losses
