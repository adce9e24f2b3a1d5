"""A session continues elsewhere from its bytes, and other bytes are refused."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest

from fdstore.model.call_limits import CallLimits
from fdstore.programs.interpreter import dumps
from fdstore.programs.interpreter.events import (
    LATER,
    DamagedState,
    Failed,
    Finished,
    HostCall,
    UnreadableState,
)
from fdstore.programs.interpreter.prelude import NAMES
from fdstore.programs.interpreter.session import Session
from tests.memory import assert_takes_less
from tests.unit.programs.interpreter.host import Host


def test_a_dump_between_calls_continues_elsewhere():
    with Session(functions=["read_log"]) as session:
        session.feed("import re\ndef double(n): return 2 * n\nx = {'a': [1, (2, 3)], 'b': {4}}\nprint(x)")
        state = session.dump()
        assert session.feed("x['a'][0]") == Finished("1")

    with Session(functions=["read_log"], state=state) as loaded:
        assert loaded.printed == ""
        assert loaded.feed("double(x['a'][1][1]), re.findall('a', 'aa')") == Finished("(6, ['a', 'a'])")
        failed = loaded.feed("double(None) / 0")

    assert isinstance(failed, Failed)
    assert "line 1 of an earlier call, in double" in failed.text or "line 2 of an earlier call" in failed.text


def test_a_snapshot_has_output_numbers_and_time():
    with Session() as session:
        session.feed("print('before')\nx = sum(range(2_000_000))\na = await ask('q')\nprint(a)\nfds()")
        waiting = session.resume(LATER)
        used_s = session.used_s
        snapshot = session.dump()
        # the session that was dumped goes on as well
        assert session.settle({0: "here"}) == HostCall(1, "_fds", ())

    with Session(snapshot=snapshot) as loaded:
        assert loaded.restored() == waiting
        assert loaded.printed == "before\n"
        assert loaded.used_s == pytest.approx(used_s, abs=used_s / 2 + 0.01)
        assert loaded.settle({0: "there"}) == HostCall(1, "_fds", ())
        assert loaded.resume([]) == Finished("[]")
        assert loaded.printed == "before\nthere\n"


def test_a_text_works_after_a_load(shared: Session):
    host = Host("one\ntwo\n")
    with Session() as session:
        host.run(session, "log = fd(1)\nparts = log.split(chars=4)")
        state = session.dump()

    with Session(state=state) as loaded:
        ended = host.run(loaded, "log, parts, parts[1].text(), isinstance(log, Text), fd(log) is log")

    assert ended == Finished(
        '(Text("fd:1", 8 chars, 2 lines), [Text("fd:1#C1-4", 4 chars, 1 lines), '
        "Text(\"fd:1#C5-8\", 4 chars, 1 lines)], 'two\\n', True, True)"
    )


def test_a_fresh_state_is_small():
    with Session() as session:
        assert len(session.dump()) < 32_000


def test_functions_of_the_user_may_change_between_calls():
    host = Host()
    with Session(functions=["old", "kept", "server.a"]) as session:
        assert host.run(session, "await old(), await server.a()") == Finished(
            "(['old', [], {}], ['server.a', [], {}])"
        )
        state = session.dump()

    with Session(functions=["kept", "new", "server.b"], state=state) as loaded:
        ended = host.run(loaded, "await kept(), await new(), await server.b(1)")
        gone = host.run(loaded, "await old()")

    assert ended == Finished("(['kept', [], {}], ['new', [], {}], ['server.b', [1], {}])")
    assert isinstance(gone, Failed)
    assert "the function old is not there any more" in gone.text


def test_a_state_of_an_older_prelude_gets_the_current_one():
    with Session() as session:
        session.feed("kept = 1")
        header, payload = dumps.split(session.dump(), interpreter=_version(), snapshot=False)
    header.prelude = "of an older version"

    with Session(state=dumps.join(header, payload)) as loaded:
        assert Host("text").run(loaded, "kept, fd(1).text()") == Finished("(1, 'text')")
        failed = Host().run(loaded, "fd(1.5)")
    assert isinstance(failed, Failed)
    assert "earlier call" not in failed.text


@pytest.mark.parametrize("damage", [b"", b"fdpy1", b"fdpy1\0\0\0\xffx", b"nonsense" * 9])
def test_damaged_bytes_are_refused(damage: bytes):
    with pytest.raises(DamagedState):
        Session(state=damage)


def test_a_damaged_dump_is_refused():
    with Session() as session:
        dump = session.dump()
    header, payload = dumps.split(dump, interpreter=_version(), snapshot=False)

    for broken in (payload[:100], b"x" + payload[1:], b"\xff" * len(payload)):
        with pytest.raises(DamagedState):
            Session(state=dumps.join(header, broken))


def test_a_state_that_memory_does_not_hold_is_refused():
    with Session() as session:
        session.feed("x = 'x' * 50_000_000")
        state = session.dump()

    with pytest.raises(UnreadableState):
        Session(CallLimits(memory_bytes=16 << 20), state=state)


def test_a_dump_of_another_version_of_the_interpreter_is_refused():
    with Session() as session:
        header, payload = dumps.split(session.dump(), interpreter=_version(), snapshot=False)
    header.interpreter = "0.9.0"

    with pytest.raises(UnreadableState, match=r"version 0\.9\.0"):
        Session(state=dumps.join(header, payload))


def test_states_and_snapshots_are_told_apart():
    with Session() as session:
        state = session.dump()
        session.feed("await ask('q')")
        session.resume(LATER)
        snapshot = session.dump()

    with pytest.raises(DamagedState):
        Session(state=snapshot)
    with pytest.raises(DamagedState):
        Session(snapshot=state)


def test_the_largest_variables_are_named(shared: Session):
    shared.feed("big = 'x' * 500_000\nmany = [str(n) for n in range(20_000)]\nsmall = 1")

    (first, size), (second, _), *others = shared.largest_variables(20)

    assert (first, second) == ("many", "big")
    assert "small" in dict(others)
    assert not set(NAMES) & set(dict(others))
    assert 500_000 < size < 2_000_000
    shared.feed("big = many = None")


def _version() -> str:
    import pydantic_monty

    return pydantic_monty.__version__


@pytest.mark.parametrize("size", [1, dumps.PACKED_BYTES, dumps.PACKED_BYTES + 1, dumps.COMPRESSED_BYTES + 1])
def test_a_dump_of_any_size_is_read_as_it_was_written(size: int):
    payload = bytes(size)

    dump = dumps.join(
        dumps.Header(interpreter="1", prelude="2", functions=[], feeds=1, own_feeds=[]), payload
    )

    assert dumps.split(dump, interpreter="1", snapshot=False)[1] == payload
    assert len(dump) < 1000 + size / 100 or size > dumps.COMPRESSED_BYTES


def test_a_program_with_a_thousand_questions_under_way_is_small():
    with Session() as session:
        event = session.feed("import asyncio\nawait asyncio.gather(*[ask(f'q {n}') for n in range(1000)])")
        while isinstance(event, HostCall):
            event = session.resume(LATER)
        assert len(session.dump()) < 64_000


def _dump(payload: bytes, **header: Any) -> bytes:
    """Return a dump with this packed payload, as others may write it."""
    facts = {"interpreter": "1", "prelude": "2", "functions": [], "feeds": 1, "own_feeds": []}
    head = msgspec.msgpack.encode(facts | {"compressed": True} | header)
    return b"fdpy1" + len(head).to_bytes(4, "big") + head + payload


@pytest.mark.thorough("a bound of memory")
@pytest.mark.parametrize("pack", [partial(lzma.compress, preset=0), zlib.compress])
def test_a_small_dump_is_not_unpacked_into_much_memory(pack: Callable[[bytes], bytes]):
    packed = pack(bytes(6 * dumps.COMPRESSED_BYTES))

    def split(_: int) -> None:
        with pytest.raises(DamagedState, match="more than"):
            dumps.split(_dump(packed), interpreter="1", snapshot=False)

    assert_takes_less(4 * dumps.COMPRESSED_BYTES, split)


@pytest.mark.thorough("a bound of memory")
def test_a_dump_that_needs_much_memory_to_unpack_is_refused():
    chain = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}]
    packed = lzma.compress(b"small", filters=chain)

    with pytest.raises(DamagedState, match=r"[Mm]emory"):
        dumps.split(_dump(packed), interpreter="1", snapshot=False)


@pytest.mark.parametrize("pack", [lzma.compress, zlib.compress])
@pytest.mark.parametrize("harm", [lambda data: data[:-3], lambda data: data + b"more", lambda data: data * 2])
def test_a_dump_that_was_cut_or_goes_on_is_refused(
    pack: Callable[[bytes], bytes], harm: Callable[[bytes], bytes]
):
    with pytest.raises(DamagedState):
        dumps.split(_dump(harm(pack(b"payload" * 99))), interpreter="1", snapshot=False)


HEADERS: list[dict[str, Any]] = [
    {"pending": {1: -1}, "number": 5},
    {"pending": {1: 5}, "number": 5},
    {"blocked": 5, "number": 5},
    {"number": -1},
    {"number": 2**60},
    {"feeds": -(2**60)},
    {"entropy": 2**63},
    {"used_s": float("nan")},
    {"used_s": -1e308},
    {"used_s": float("inf")},
    {"functions": None},
    {"own_feeds": "x"},
]


@pytest.mark.parametrize("header", HEADERS, ids=str)
def test_a_header_with_impossible_numbers_is_refused(header: dict[str, Any]):
    with pytest.raises(DamagedState):
        dumps.split(_dump(zlib.compress(b""), code="1", **header), interpreter="1", snapshot=True)


@pytest.mark.parametrize("harm", [{"pending": {}}, {"blocked": 0}, {"pending": {7: 0}}], ids=str)
def test_a_snapshot_that_waits_for_other_calls_than_its_header_says_is_refused(harm: dict[str, Any]):
    with Session() as session:
        session.feed("await ask('q')")
        session.resume(LATER)
        header, payload = dumps.split(session.dump(), interpreter=_version(), snapshot=True)
    for name, value in harm.items():
        setattr(header, name, value)

    with pytest.raises(DamagedState):
        Session(snapshot=dumps.join(header, payload))


def test_a_blocked_snapshot_without_its_call_is_refused():
    with Session() as session:
        session.feed("fd(1)")
        session.resume(LATER)
        header, payload = dumps.split(session.dump(), interpreter=_version(), snapshot=True)
    header.blocked = None

    with pytest.raises(DamagedState):
        Session(snapshot=dumps.join(header, payload))
