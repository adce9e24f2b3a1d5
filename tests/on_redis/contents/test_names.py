"""Names: put, find, rename, list and close match a model, atomically, at the promised cost."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import Conflict, InvalidArgument, NotFound, QuotaExceeded
from fdstore.model.records import TreeLimits
from fdstore.store.contents import contents, naming, reading
from fdstore.text.selection import Part
from tests.on_redis.contents.test_page_cost import calls
from tests.properties import examples
from tests.round_trips import count_round_trips
from tests.waiting import PATIENCE_S, concurrently, meanwhile

TRIAGE = "fdstore:{triage}:triage"
KEYS = st.sampled_from(["a", "b", "b/c", "b/é", "b#7", "漢", "b\u202e\ufeff\\ x"])


def test_any_sequence_of_calls_matches_a_model_of_names(
    store_model: Any, store: Store, execute: Any, tmp_path: Path
) -> None:
    class WithNames(store_model):
        def names_of(self, proc: Process) -> dict[str, tuple[str, int]]:
            return {fd: entry for fd, entry in self.tables[proc.id].items() if fd.startswith("name:")}

        @rule(
            data=st.data(),
            key=KEYS,
            text=st.text("ab漢\n", max_size=20),
            how=st.sampled_from(["any", "same", "absent", "other"]),
        )
        def put(self, data: st.DataObject, key: str, text: str, how: str) -> None:
            proc = self.draw_process(data)
            name, found = f"name:{key}", proc.find(key)
            assert (found is not None) == (name in self.tables[proc.id])
            other = proc.create("another")
            self.tables[proc.id][other.fd] = ("another", 4000)
            expect = {"any": None, "same": found or other, "absent": fdstore.ABSENT, "other": other}[how]
            is_expected = how == "any" or ((found is None) == (how == "absent") and how != "other")
            self.next_fd[proc.id] += 1

            if is_expected:
                made = proc.put(key, text, expect=expect, page_size=7)
                assert (made.fd, made.chars) == (name, len(text))
                self.tables[proc.id][name] = (text, 7)
                self.next_fd[proc.id] += 1
            else:
                with pytest.raises(Conflict):
                    proc.put(key, text, expect=expect)

        @precondition(lambda self: any("name:" in fd for table in self.tables.values() for fd in table))
        @rule(data=st.data(), new=KEYS, replace=st.booleans())
        def rename(self, data: st.DataObject, new: str, replace: bool) -> None:
            owners = sorted(p for p in self.clients if any("name:" in fd for fd in self.tables[p]))
            if not owners:
                return
            proc = self.draw_client(data, data.draw(st.sampled_from(owners)))
            table = self.tables[proc.id]
            name = data.draw(st.sampled_from(sorted(self.names_of(proc))))

            if name == f"name:{new}" or replace or f"name:{new}" not in table:
                made = proc.rename(name.removeprefix("name:"), new, replace=replace)
                entry = table.pop(name)
                table[f"name:{new}"] = entry
                assert (made.fd, made.chars) == (f"name:{new}", len(entry[0]))
            else:
                with pytest.raises(Conflict):
                    proc.rename(name.removeprefix("name:"), new, replace=replace)

        @rule(data=st.data(), prefix=st.sampled_from(["", "b", "b/", "漢", "z"]))
        def list_names(self, data: st.DataObject, prefix: str) -> None:
            proc = self.draw_process(data)

            found = {d.fd: d.chars for d in proc.list(prefix=prefix)}

            assert list(found) == sorted(found, key=str.encode)
            assert found == {
                fd: len(text)
                for fd, (text, _) in self.names_of(proc).items()
                if fd.startswith(f"name:{prefix}")
            }

    WithNames.store, WithNames.execute, WithNames.folder = store, staticmethod(execute), tmp_path
    run_state_machine_as_test(
        WithNames,
        settings=settings(
            max_examples=examples(30),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_of_concurrent_puts_that_expect_the_same_exactly_one_wins(
    redis_url: str, store: Store, proc: Process
) -> None:
    winners: list[str] = []
    turn = threading.Barrier(8)
    first = proc.put("plan", "0")

    def compete(number: int) -> None:
        with fdstore.connect(redis_url) as own:
            mine, expect = own.process("triage"), first
            for round_number in range(10):
                turn.wait(PATIENCE_S)
                try:
                    mine.put("plan", f"{round_number} {number}", expect=expect)
                    winners.append(f"{round_number} {number}")
                except Conflict:
                    pass
                turn.wait(PATIENCE_S)
                found = mine.find("plan")
                assert found is not None
                expect = found

    concurrently(*(partial(compete, number) for number in range(8)))

    assert sorted(text.split()[0] for text in winners) == [str(n) for n in range(10)]
    assert proc.read("name:plan").text == winners[-1]


def test_readers_of_a_name_under_replacement_see_whole_texts_and_no_error(
    redis_url: str, proc: Process
) -> None:
    texts = ["".join(f"{n} {line}\n" for line in range(3000)) for n in range(4)]
    proc.put("log", texts[0])
    child = proc.child(["name:log"])

    def read(mine: Process) -> None:
        assert mine.read("name:log", read_all=True).text in texts
        assert mine.read("name:log#L2000-2010").text.split()[1] == "1999"
        assert mine.read("name:log", start=3).text
        assert mine.stat("name:log").lines == 3000
        assert mine.search("name:log", "^. 2999$").matches == 1
        assert mine.read_bytes("name:log", 0, 4) in {b"0 0\n", b"1 0\n", b"2 0\n", b"3 0\n"}
        assert mine.extract("name:log").chars == len(texts[0])

    with ExitStack() as readers:
        for _ in range(3):
            own = readers.enter_context(fdstore.connect(redis_url))
            readers.enter_context(meanwhile(partial(read, own.process("triage"))))
        for n in range(150):
            proc.put("log", texts[n % 4])
            proc.rename("log", "log", replace=True)

    assert child.read("name:log", read_all=True).text == texts[0]
    assert proc.read("name:log", read_all=True).text == texts[149 % 4]


def test_names_cost_the_same_beside_ten_thousand_others(store: Store, proc: Process, execute: Any) -> None:
    for n in range(3):
        proc.put(f"mine/{n}", f"{n}\n" * 2000)
    others = [f"other/{n:05}" for n in range(10_000)]
    add_names(execute, others)
    try:
        handle = proc.handle

        def commands_for(operation: Generator[Any, Any, Any]) -> tuple[Any, int, int]:
            before = calls(execute)
            found, rounds = count_round_trips(store, operation)
            return found, rounds, calls(execute) - before - 2

        listed, rounds, commands = commands_for(naming.list_names(handle, "mine/"))
        assert ([d.fd for d in listed], rounds) == ([f"name:mine/{n}" for n in range(3)], 1)
        assert commands <= 9
        (listed, total), rounds, commands = commands_for(naming.page_of_names(handle, "mine/", 2, 1))
        assert ([d.fd for d in listed], total, rounds, commands <= 6) == (["name:mine/1"], 3, 2, True)
        found, rounds, commands = commands_for(naming.find(handle, "mine/2"))
        assert (found.chars, rounds, commands <= 5) == (4000, 1, True)
        assert commands_for(naming.find(handle, "absent"))[1] == 1
        _, rounds, commands = commands_for(contents.create(handle, "new", name="name:mine/2"))
        assert (rounds, commands < 50) == (1, True)
        # through the name, at most one round trip more than through a number that is known
        page, line = Part("page", 1, 2), Part("line", 100, 5)
        made = proc.create("x\n" * 10_000)
        named = proc.put("mine/1", "x\n" * 10_000)
        for part in (Part("page", 1, 1), page, line, None):
            by_number = by_name = 0
            for _ in range(2):  # the second time all is known that can be
                _, by_number = count_round_trips(store, reading.read(handle, made.fd, part))
                _, by_name = count_round_trips(store, reading.read(handle, named.fd, part))
            assert by_name <= by_number + 1
    finally:
        execute("HDEL", f"{TRIAGE}:fds", *(f"name:{key}" for key in others))
        execute("ZREM", f"{TRIAGE}:names", *others)


def add_names(execute: Any, keys: list[str]) -> None:
    """Let these names mean the first content of the process."""
    execute("HSET", f"{TRIAGE}:fds", *(part for key in keys for part in (f"name:{key}", "triage/1")))
    execute("ZADD", f"{TRIAGE}:names", *(part for key in keys for part in (0, key)))


def test_a_replacement_counts_net_against_the_quotas(store: Store) -> None:
    proc = store.process("small", limits=TreeLimits(tree_bytes=1000, tree_fds=2))
    proc.put("a", "x" * 900)
    proc.put("b", "y" * 100)

    assert proc.put("a", "z" * 900).bytes == 900
    with pytest.raises(QuotaExceeded, match="tree_bytes"):
        proc.put("b", "y" * 101)
    with pytest.raises(QuotaExceeded, match="tree_fds"):
        proc.put("c", "")
    twin = proc.fork()
    with pytest.raises(QuotaExceeded):  # the old one is held by the copy
        proc.put("a", "z" * 900)
    assert twin.read("name:a").text == proc.read("name:a").text == "z" * 900


def test_a_refused_put_leaves_nothing_behind(proc: Process, execute: Any) -> None:
    first = proc.put("a", "first")
    proc.put("a", "second")

    for text in ("third", "third\n" * 200_000):
        with pytest.raises(Conflict, match="another content"):
            proc.put("a", text, expect=first)
        with pytest.raises(Conflict, match="exists already"):
            proc.put("a", text, expect=fdstore.ABSENT)
        with pytest.raises(Conflict, match="does not exist"):
            proc.put("b", text, expect=first)

    assert execute("KEYS", "*staging*") == []
    assert proc.read("name:a").text == "second"


def test_bad_keys_are_typed_errors_and_change_nothing(proc: Process) -> None:
    proc.put("a", "kept")

    for bad in ("", "a\n", "x" * 1025, "\ud800", "a#L1", None, 5):
        key: Any = bad
        for call in (
            lambda k: proc.put(k, "x"),
            proc.find,
            lambda k: proc.rename("a", k),
            lambda k: proc.rename(k, "b"),
        ):
            with pytest.raises(InvalidArgument):
                call(key)
    with pytest.raises(InvalidArgument, match="expect"):
        proc.put("a", "x", expect="a descriptor")  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        proc.rename("b", "c")
    with pytest.raises(NotFound, match="name:a"):
        proc.stat("name:b")
    assert [(d.fd, d.chars) for d in proc.list()] == [("name:a", 4)]


def test_names_are_listed_in_pieces(proc: Process, execute: Any) -> None:
    proc.create("x")
    count = naming.AT_ONCE * 2 + 3
    entries = [f"b/{n:05}" for n in range(count)]
    add_names(execute, entries)

    listed = proc.list(prefix="b")

    execute("HDEL", f"{TRIAGE}:fds", *(f"name:{key}" for key in entries))
    assert [d.fd for d in listed] == [f"name:{key}" for key in entries]
    assert proc.list(prefix="b") == []  # entries without a name in the table are ignored
    execute("ZREM", f"{TRIAGE}:names", *entries)
