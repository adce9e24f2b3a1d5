"""The same code with the same answers makes the same calls, also if it is dumped and loaded at every wait."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fdstore.model.call_limits import CallLimits
from fdstore.programs.interpreter.events import Event, Failed, Finished, Waiting
from fdstore.programs.interpreter.session import Session
from tests.properties import examples
from tests.unit.programs.interpreter.host import Host

LATER = ("_ask", "_tool", "sleep")

statements = st.sampled_from(
    [
        "print(random.random())",
        "print(random.sample(range(99), 2))",
        "print(time.time())",
        "print(len(fds()))",
        "create(str(kept))",
        "kept.append(await ask('q', str(len(kept))))",
        "kept.append(fd(1).split(chars=3)[0])",
        "print(await ask('q', *[part for part in kept if isinstance(part, Text)]))",
        "print({'a', 'b', 'c', str(len(kept))}, hash('x'), {'z': 1, 'y': [None]})",
        "print(kept, print, Text, ask)",
        "await asyncio.sleep(1)",
        "time.sleep(1)",
        "print(await read_log(len(kept)))",
        "raise ValueError(f'{len(kept)}')",
        "try:\n    await ask('fail')\nexcept ValueError as error:\n    print(error)",
        "print(os.urandom(3))",
    ]
)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Functions that call one another, one after the other and at the same time."""
    lines = ["import asyncio, os, random, time", "kept = []"]
    count = draw(st.integers(1, 4))
    for number in range(count):
        body = draw(st.lists(statements, min_size=1, max_size=4))
        if number:
            called = draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=4))
            tasks = ", ".join(f"f{other}()" for other in called)
            settled = draw(st.sampled_from(["", ", return_exceptions=True"]))
            body.insert(draw(st.integers(0, len(body))), f"print(await asyncio.gather({tasks}{settled}))")
        lines.append(f"async def f{number}():")
        lines += [f"    {line}" for statement in body for line in statement.split("\n")]
    return "\n".join([*lines, f"await f{count - 1}()", "(kept, random.random())"])


class Run:
    """A run of a program; `events`, `printed` and the state after it."""

    def __init__(self, code: str, seed: int, *, move: bool) -> None:
        self._order = random.Random(seed)
        self._host = Host("some text", later=LATER)
        self._session = Session(CallLimits(recursion=200), functions=["read_log"], seed=seed)
        self._move = move
        try:
            self._run(code)
        finally:
            self._session.close()

    def _run(self, code: str) -> None:
        event = self._host.note(self._session.feed(code))
        while not isinstance(event, Finished | Failed):
            event = self._host.note(self._next(event))
        self.events = self._host.events
        self.printed = self._session.printed
        self.after = self._session.feed("(kept, random.random())")

    def _next(self, event: Event) -> Event:
        if not isinstance(event, Waiting):
            return self._host.reply(self._session, event)  # type: ignore[arg-type]
        if self._move:
            snapshot = self._session.dump()
            self._session.close()
            self._session = Session(
                self._session.limits, functions=["of another program"][:0], snapshot=snapshot
            )
            assert self._session.restored() == event
        some = self._order.sample(event.numbers, self._order.randint(1, len(event.numbers)))
        return self._session.settle({number: self._host.postponed[number] for number in some})


@pytest.mark.thorough("generated programs")
@given(code=programs(), seed=st.integers(0, 99))
@example(
    code="import asyncio, random\nkept = []\nasyncio.run(asyncio.sleep(1))\nprint(object, [].append)", seed=1
)
@settings(max_examples=examples(40))
def test_runs_with_and_without_dumps_are_the_same(code: str, seed: int):
    straight, again = Run(code, seed, move=False), Run(code, seed, move=False)
    moved = Run(code, seed, move=True)

    assert straight.events == again.events == moved.events
    assert straight.printed == again.printed == moved.printed
    assert straight.after == again.after == moved.after


def test_a_thousand_pending_asks_go_on_elsewhere_in_order():
    code = (
        "import asyncio\nasync def one(n):\n"
        "    answer = await ask('q', str(n))\n    create(answer)\n    return answer\n"
        "answers = await asyncio.gather(*[one(n) for n in range(1000)])\n"
        "answers == [f'q: {n}' for n in range(1000)]"
    )
    host = Host(later=("_ask",))
    with Session() as session:
        event = session.feed(code)
        while not isinstance(event, Waiting):
            event = host.reply(session, event)  # type: ignore[arg-type]
        assert event == Waiting(tuple(range(1000)))
        snapshot = session.dump()

    assert len(snapshot) < 300_000
    with Session(snapshot=snapshot) as loaded:
        event = loaded.settle(host.postponed)
        created = []
        while not isinstance(event, Finished | Failed | Waiting):
            created.append((event.number, event.args[0]))
            event = host.reply(loaded, event)
    assert event == Finished("True")
    assert created == [(1000 + n, f"q: {n}") for n in range(1000)]
