"""The questions of a tree against a small model: asked, answered, withdrawn and timed out in any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fdstore.client import Store
from fdstore.errors import Fenced, NotFound, QuestionClosed
from fdstore.model.lifecycle import ENDED
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import (
    leases,
    people,
    process_records,
    processes,
    python_state,
    questions,
    waiting,
)
from fdstore.store.processes.questions import StoredQuestion
from tests.on_redis.child_agents import claim
from tests.properties import examples
from tests.stored_keys import Stored, check_keys

Execute = Callable[..., Any]

CHOICES = ("red", "blue")
CALLS = ("a", "b", "c")
DAY_S = 86_400.0
MOST_PROCESSES = 6


@dataclass
class ModelQuestion:
    """A question: what became of it, if anything: "timeout", "withdrawn" or what a person said."""

    kind: str
    became: Any = None
    is_over: bool = False
    """Its time is over."""


@dataclass
class ModelProcess:
    """A process: `handle` is that of its last attempt, `stale` that of the one before."""

    parent: str | None
    handle: ProcessHandle
    state: str = "running"
    stale: ProcessHandle | None = None
    waits_for: list[str] = field(default_factory=list)
    by_call: dict[str, int] = field(default_factory=dict)
    asked: dict[int, ModelQuestion] = field(default_factory=dict)

    def open(self) -> list[int]:
        """The numbers of the questions that take an answer."""
        if self.state == "ended":
            return []
        return [number for number, each in self.asked.items() if each.became is None and not each.is_over]


class QuestionsModel(RuleBasedStateMachine):
    """Agents of one tree, and the people whom they ask."""

    store: Store
    execute: Execute

    def __init__(self) -> None:
        super().__init__()
        self.execute("FLUSHALL")
        self.root = self.store.process("t")
        self.processes: dict[str, ModelProcess] = {}
        self.ids = itertools.count()
        self.add(None)

    def add(self, parent: str | None) -> None:
        of = self.root.handle if parent is None else self.processes[parent].handle
        child = self.store.run(processes.create_child(of, [], state="ready"))
        self.processes[child.id] = ModelProcess(parent, claim(self.store, child.id))

    def one(self, data: st.DataObject, state: str) -> tuple[str, ModelProcess]:
        names = [name for name, each in self.processes.items() if each.state == state]
        name = data.draw(st.sampled_from(names), state)
        return name, self.processes[name]

    def has(self, state: str) -> bool:
        return any(each.state == state for each in self.processes.values())

    def has_running(self) -> bool:
        return self.has("running")

    def has_waiting(self) -> bool:
        return self.has("waiting")

    def has_ready(self) -> bool:
        return self.has("ready")

    def leaves(self) -> list[str]:
        """The running processes without live ones below them."""
        return [
            name
            for name, each in self.processes.items()
            if each.state == "running" and all(map(self.has_ended, self.below(name)[1:]))
        ]

    def has_leaf(self) -> bool:
        return bool(self.leaves())

    def has_asked(self) -> bool:
        return any(each.asked for each in self.processes.values())

    def has_room(self) -> bool:
        return self.has_running() and len(self.processes) < MOST_PROCESSES

    def below(self, name: str) -> list[str]:
        """Return a process and all below it."""
        found = [name]
        for other, each in self.processes.items():
            if each.parent in found:
                found.append(other)
        return found

    def end(self, name: str) -> None:
        """Note that a process has ended, with all below it, and who waited for it."""
        for each in self.below(name):
            if self.processes[each].state != "ended":
                self.processes[each].state = "ended"
                self.processes[each].waits_for = []
        for each in self.processes.values():
            if each.state == "waiting":
                each.waits_for = [other for other in each.waits_for if not self.has_ended(other)]
                if not each.waits_for:
                    each.state = "ready"

    def has_ended(self, name: str) -> bool:
        return name in self.processes and self.processes[name].state == "ended"

    # as an agent

    @precondition(has_room)
    @rule(data=st.data())
    def spawn(self, data: st.DataObject) -> None:
        self.add(self.one(data, "running")[0])

    @precondition(has_running)
    @rule(
        data=st.data(), call=st.sampled_from(CALLS), kind=st.sampled_from(["question", "approval", "choice"])
    )
    def ask(self, data: st.DataObject, call: str, kind: str) -> None:
        _, process = self.one(data, "running")
        question = StoredQuestion(
            kind="approval" if kind == "approval" else "question",
            text="" if kind == "approval" else "Which?",
            choices=CHOICES if kind == "choice" else (),
            tool="deploy" if kind == "approval" else "",
            arguments=questions.write_arguments({"n": 1}),
            timeout_s=DAY_S,
        )

        asked = self.store.run(questions.ask(process.handle, call, question))

        number = process.by_call.setdefault(call, len(process.by_call) + 1)
        assert asked.number == number
        known = process.asked.setdefault(number, ModelQuestion(kind))
        self.check_answer(known, asked.answer)

    @precondition(has_running)
    @rule(data=st.data(), call=st.sampled_from(CALLS))
    def look(self, data: st.DataObject, call: str) -> None:
        _, process = self.one(data, "running")

        found = self.store.run(questions.look(process.handle, call, DAY_S))

        number = process.by_call.get(call)
        assert (None if found is None else found.number) == number
        if found is not None and number is not None:
            self.check_answer(process.asked[number], found.answer)

    def check_answer(self, question: ModelQuestion, answer: Any) -> None:
        """Compare what became of a question that its process looks at; it is final from then on."""
        if question.became is None and question.is_over:
            question.became = "timeout"
        if question.became is None:
            assert answer is None
        elif isinstance(question.became, str):
            assert answer.how == question.became
        else:
            assert (
                answer.by,
                answer.text,
                answer.choice,
                answer.approved,
                answer.arguments,
            ) == question.became

    @precondition(has_running)
    @rule(data=st.data(), left=st.sets(st.integers(1, 4)))
    def withdraw(self, data: st.DataObject, left: set[int]) -> None:
        _, process = self.one(data, "running")
        call = f"code {next(self.ids)}"
        self.store.run(python_state.begin(process.handle, call, 1))

        self.store.run(python_state.end(process.handle, call, None, withdrawn=sorted(left)))

        for number in left & process.asked.keys():
            if process.asked[number].became is None:
                process.asked[number].became = "withdrawn"

    @precondition(has_running)
    @rule(data=st.data(), for_children=st.booleans())
    def park(self, data: st.DataObject, for_children: bool) -> None:
        name, process = self.one(data, "running")
        numbers = [
            number for number, each in process.asked.items() if data.draw(st.booleans(), f"for {number}")
        ]
        children = (
            [other for other, each in self.processes.items() if each.parent == name] if for_children else []
        )
        live = [child for child in children if self.processes[child].state != "ended"]

        parked = self.store.run(waiting.park(process.handle, children, 100.0, numbers))

        goes_on = any(process.asked[number].became is not None for number in numbers) or not (numbers or live)
        assert parked == (not goes_on)
        if parked:
            process.state, process.waits_for = "waiting", [*live, *(["person"] if numbers else [])]

    @precondition(has_ready)
    @rule(data=st.data(), worker=st.sampled_from(["w1", "w2"]))
    def resume(self, data: st.DataObject, worker: str) -> None:
        name, process = self.one(data, "ready")
        process.stale, process.handle = process.handle, claim(self.store, name, worker)
        process.state = "running"

        with pytest.raises(Fenced):
            self.store.run(questions.look(process.stale, CALLS[0], DAY_S))

    @precondition(has_running)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        _, process = self.one(data, "running")
        self.execute("HSET", process.handle.keys.record, "lease_until", "0")

        self.store.run(leases.check_overdue(process.handle.keys, 1000))

        process.state = "ready"

    @precondition(has_leaf)
    @rule(data=st.data())
    def exit(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.leaves()), "leaf")
        process = self.processes[name]

        self.store.run(processes.end(process.handle, "exited"))

        self.end(name)

    # as people, as the clock

    @precondition(has_asked)
    @rule(
        data=st.data(),
        given=st.sampled_from(["text", "choice", "yes", "no", "changed", "same"]),
        is_named=st.booleans(),
        by=st.sampled_from(["ann", "bob"]),
    )
    def answer(self, data: st.DataObject, given: str, is_named: bool, by: str) -> None:
        name = data.draw(
            st.sampled_from([name for name, each in self.processes.items() if each.asked]), "process"
        )
        process = self.processes[name]
        number = data.draw(st.sampled_from(sorted(process.asked)), "question")
        takes = process.open()
        if not is_named and len(takes) == 1:
            number = takes[0]
        question = process.asked[number]
        if question.kind == "approval":
            arguments = {"changed": {"n": 2}, "same": {"n": 1}}.get(given)
            says: dict[str, Any] = {"approve": given != "no", "arguments": arguments}
            became = (by, "", None, given != "no", {"n": 2} if given == "changed" else None)
        elif question.kind == "choice" and given == "choice":
            says, became = {"choice": 2}, (by, "blue", 2, None, None)
        else:
            says, became = {"text": "green"}, (by, "green", None, None, None)
        asks = number if is_named or len(takes) != 1 else None

        if number in takes:
            self.store.answer(name, question=asks, by=by, **says)
            question.became = became
            if "person" in process.waits_for and process.state == "waiting":
                process.state, process.waits_for = "ready", []
        else:
            with pytest.raises(QuestionClosed):
                self.store.answer(name, question=number, by=by, **says)
        if not process.open():
            with pytest.raises(NotFound):
                self.store.answer(name, by=by, **says)

    @precondition(has_asked)
    @rule(data=st.data())
    def time_passes(self, data: st.DataObject) -> None:
        name = data.draw(
            st.sampled_from([name for name, each in self.processes.items() if each.asked]), "process"
        )
        process = self.processes[name]
        number = data.draw(st.sampled_from(sorted(process.asked)), "question")
        self.execute("HSET", process.handle.keys.questions, f"{number}/until", "1")
        process.asked[number].is_over = True

    @precondition(has_waiting)
    @rule(data=st.data())
    def sweep(self, data: st.DataObject) -> None:
        name, process = self.one(data, "waiting")
        self.execute("ZADD", process.handle.keys.tree.leases, 1, name)

        assert self.store.run(leases.check_overdue(process.handle.keys)).decision == "wake"

        process.state, process.waits_for = "ready", []

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.processes)), "process")
        self.store.run(processes.cancel("fdstore", name))
        self.end(name)
        if not self.has_running():
            self.add(None)

    @invariant()
    def the_store_shows_the_same(self) -> None:
        opened = {(name, number) for name, each in self.processes.items() for number in each.open()}
        assert {(each.process, each.number) for each in self.store.questions("t")} == opened
        for name, process in self.processes.items():
            found = self.store.run(people.questions_of("fdstore", name))
            assert [each.number for each in found.questions] == process.open()
            record = self.store.run(process_records.record("fdstore", name))
            assert ("ended" if record.state in ENDED else record.state) == process.state, name
            assert sorted(record.waiting_for) == sorted(process.waits_for)
        check_keys(Stored(self.execute))


def test_questions_of_a_tree_are_as_a_small_model_says(store: Store, execute: Execute) -> None:
    class Machine(QuestionsModel):
        pass

    Machine.store, Machine.execute = store, staticmethod(execute)  # type: ignore[assignment]
    run_state_machine_as_test(Machine, settings=settings(max_examples=examples(100), stateful_step_count=20))
    execute("FLUSHALL")
