"""Names while they are replaced, after a torn log, and damaged ones."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import Conflict, DamagedRecord, NotFound
from fdstore.store.contents import naming
from fdstore.store.doctor import audit
from fdstore.store.keys import TreeKeys
from tests.round_trips import count_round_trips
from tests.waiting import meanwhile


def test_a_half_done_rename_reads_as_done(proc: Process, execute: Any) -> None:
    proc.put("a", "text")
    content = execute("HGET", "fdstore:{triage}:triage:fds", "name:a")
    execute("HSET", "fdstore:{triage}:triage:fds", "name:b", content, "name:a", "")

    assert proc.find("a") is None
    assert proc.read("name:b").text == "text"
    assert [d.fd for d in proc.list()] == ["name:b"]
    for call in (proc.stat, proc.close, lambda fd: proc.child([fd])):
        with pytest.raises(NotFound):
            call("name:a")
    assert proc.put("a", "new", expect=fdstore.ABSENT).fd == "name:a"
    execute("ZADD", "fdstore:{triage}:triage:names", 0, "b")


def test_a_follower_of_a_name_stops_when_it_means_another_content(proc: Process) -> None:
    proc.put("log", "x" * 600_000)
    pieces = proc.follow("name:log")

    read = next(pieces)
    proc.put("log", "y" * 600_000)

    assert set(read) == {"x"}
    with pytest.raises(Conflict):
        list(pieces)


@pytest.mark.thorough("many reads, for a moment that is seldom hit")
def test_long_reads_and_listings_of_a_name_that_is_replaced_never_fail(
    redis_url: str, proc: Process, tmp_path: Path
) -> None:
    texts = [f"{digit}\n" * 50_000 for digit in range(3)]
    proc.put("log", texts[0])
    replacements = itertools.cycle(texts)

    with (
        fdstore.connect(redis_url) as other,
        meanwhile(lambda: other.process("triage").put("log", next(replacements))),
    ):
        for _ in range(5):
            assert proc.read("name:log", read_all=True).text in texts
            assert proc.read_bytes("name:log").decode() in texts
            assert proc.export("name:log", tmp_path / "log").char_count == 100_000
            assert len(set(next(proc.follow("name:log")))) == 2
            assert [d.fd for d in proc.list()] == ["name:log"]
            assert proc.search("name:log", "^.$").matches == 50_000


def test_a_rename_returns_the_content_that_it_moved(store: Store, proc: Process) -> None:
    proc.put("draft", "mine")

    made, rounds = count_round_trips(store, naming.rename(proc.handle, "draft", "final"))

    assert (made.fd, made.bytes, rounds) == ("name:final", 4, 1)
    proc.put("final", "another")
    with pytest.raises(Conflict):
        proc.put("final", "mine too", expect=made)


def test_a_name_is_listed_again_when_a_torn_log_removed_it_from_the_list(
    store: Store, proc: Process, execute: Any
) -> None:
    proc.put("a", "text")
    execute("ZREM", "fdstore:{triage}:triage:names", "a")

    [damage] = store.run(audit.check_tree(TreeKeys("fdstore", "triage")))
    assert "name:a is not among the names" in damage.said
    assert proc.find("a") == proc.stat("name:a")
    proc.put("a", "again")
    assert [d.fd for d in proc.list(prefix="")] == ["name:a"]
    assert store.run(audit.check_tree(TreeKeys("fdstore", "triage"))) == []


def test_a_damaged_name_is_named_and_hides_no_other(proc: Process, execute: Any) -> None:
    proc.put("bad", "x")
    good = proc.put("good", "x")
    content = execute("HGET", "fdstore:{triage}:triage:fds", "name:bad").decode().replace("/", ":fd:")
    kept = execute("DUMP", f"fdstore:{{triage}}:{content}")
    execute("DEL", f"fdstore:{{triage}}:{content}")
    execute("SET", f"fdstore:{{triage}}:{content}", "no hash")

    assert proc.list(prefix="") == proc.list() == [good]
    with pytest.raises(DamagedRecord):
        proc.find("bad")
    execute("DEL", f"fdstore:{{triage}}:{content}")
    execute("RESTORE", f"fdstore:{{triage}}:{content}", 0, kept)


def test_what_offload_stores_under_a_name_is_shown_even_if_it_is_replaced(
    redis_url: str, proc: Process
) -> None:
    tools = Toolset(proc)

    with (
        fdstore.connect(redis_url) as other,
        meanwhile(lambda: other.process("triage").put("latest", "another\n" * 5000)),
    ):
        for number in range(60):
            shown = tools.offload(f"{number}\n" * 9000, call_id=f"call_{number}", name="latest")
            assert f"{number}\n{number}\n" in str(shown.content)
            assert shown.descriptor is not None
            assert shown.descriptor.lines == 9000
