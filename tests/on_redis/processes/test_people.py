"""Questions to a person: each is asked once and answered once, whatever dies, and its end is final."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import DamagedRecord, FDStoreError, Fenced, InvalidArgument, NotFound, QuestionClosed
from fdstore.model.people import MAX_CHOICES, GivenAnswer, PersonAnswer
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys
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
from fdstore.store.views.live import live
from fdstore.wire.operation import Operation
from tests.on_redis.child_agents import claim
from tests.round_trips import count_round_trips, killed_after
from tests.stored_keys import Stored, check_keys

Execute = Callable[..., Any]
DAY_S = 86_400.0


def plain(text: str = "Which colour?", timeout_s: float = DAY_S, **more: Any) -> StoredQuestion:
    return StoredQuestion(kind="question", text=text, timeout_s=timeout_s, **more)


def approval(timeout_s: float = DAY_S, **arguments: Any) -> StoredQuestion:
    written = questions.write_arguments(arguments)
    return StoredQuestion(kind="approval", tool="deploy", arguments=written, timeout_s=timeout_s)


def answering(text: str, question: int | None = None) -> Operation[people.TakenAnswer]:
    return people.answer("fdstore", "triage.1", GivenAnswer(text=text, question=question))


@pytest.fixture
def agent(store: Store) -> ProcessHandle:
    """The handle of an attempt at the child of a root."""
    root = store.process("triage")
    child = store.run(processes.create_child(root.handle, [], state="ready"))
    return claim(store, child.id)


def ask(store: Store, agent: ProcessHandle, slot: str = "turn1:a", **more: Any) -> int:
    return store.run(questions.ask(agent, slot, plain(**more))).number


def pass_time(store: Store, execute: Execute, agent: ProcessHandle, number: int) -> None:
    """Let the time of a question be over."""
    execute("HSET", agent.keys.questions, f"{number}/until", "1")


def test_a_question_is_found_at_its_tree_until_it_is_answered(store: Store, agent: ProcessHandle) -> None:
    asked = store.run(questions.ask(agent, "turn1:a", plain(choices=("red", "blue"), fd="fd:1")))

    [question] = store.questions("triage")
    assert [question] == store.questions()
    assert (question.process, question.number, question.tree) == ("triage.1", 1, "triage")
    assert (question.text, question.choices, question.fd) == ("Which colour?", ("red", "blue"), "fd:1")
    assert question.until - question.asked_at == pytest.approx(DAY_S)
    assert (asked.answer, asked.until) == (None, question.until)

    answer = store.answer("triage.1", choice=2, by="ann", door="cli")

    assert (answer.text, answer.choice, answer.by, answer.door) == ("blue", 2, "ann", "cli")
    assert answer.at_ms / 1000 == pytest.approx(question.asked_at, abs=60)
    assert store.questions() == []
    found = store.run(questions.look(agent, "turn1:a", DAY_S))
    assert found is not None
    assert found.answer == answer


def test_a_call_that_is_repeated_asks_once(store: Store, agent: ProcessHandle) -> None:
    numbers = [store.run(questions.ask(agent, "turn1:a", plain())).number for _ in range(3)]

    other = store.run(questions.ask(agent, "turn1:b", plain("And which size?"))).number

    assert (numbers, other) == ([1, 1, 1], 2)
    assert [each.number for each in store.questions()] == [1, 2]


def test_the_first_answer_stays(store: Store, agent: ProcessHandle) -> None:
    ask(store, agent)
    store.answer("triage.1", "red", by="ann")

    with pytest.raises(QuestionClosed, match="'ann' answered it already") as found:
        store.answer("triage.1", "blue", question=1, by="bob")

    assert found.value.type == "conflict"
    again = store.run(questions.look(agent, "turn1:a", DAY_S))
    assert again is not None
    assert again.answer is not None
    assert again.answer.text == "red"


def test_without_a_number_an_answer_needs_an_open_question(store: Store, agent: ProcessHandle) -> None:
    said = r"^an open question of process triage\.1 does not exist$"
    with pytest.raises(NotFound, match=said):
        store.run(answering("blue"))
    ask(store, agent)
    store.answer("triage.1", text="blue", by="ann")

    with pytest.raises(NotFound, match=said):
        store.run(answering("green"))
    with pytest.raises(QuestionClosed, match="answered it already"):
        store.run(answering("green", 1))


def test_of_two_answers_at_once_one_is_taken(store: Store, agent: ProcessHandle) -> None:
    for number in range(1, 21):
        ask(store, agent, f"turn{number}:a")
        taken: list[str] = []

        def answer(by: str, number: int = number, taken: list[str] = taken) -> None:
            with suppress(QuestionClosed):
                taken.append(store.answer("triage.1", f"by {by}", question=number, by=by).by)

        threads = [threading.Thread(target=answer, args=(by,)) for by in ("ann", "bob")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        found = store.run(questions.look(agent, f"turn{number}:a", DAY_S))
        assert found is not None
        assert found.answer is not None
        assert [found.answer.by] == taken


def test_an_answer_whose_client_dies_at_any_request_is_given_once_or_not(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    for number in range(4):
        slot = f"turn1:{number}"
        asked = ask(store, agent, slot)
        ended = killed_after(store, answering("red", question=asked), number)
        assert ended == (number == 3)
        check_keys(Stored(execute))

        with suppress(QuestionClosed):
            store.answer("triage.1", "red", question=asked)

        found = store.run(questions.look(agent, slot, DAY_S))
        assert found is not None
        assert found.answer is not None
        assert found.answer.text == "red"


@pytest.mark.parametrize("how", ["killed", "killed with its tree", "exited", "failed"])
def test_the_end_of_a_process_withdraws_its_questions(
    store: Store, agent: ProcessHandle, execute: Execute, how: str
) -> None:
    ask(store, agent)
    store.run(questions.ask(agent, "turn1:b", approval()))

    if how.startswith("killed"):
        store.run(processes.cancel("fdstore", "triage.1" if how == "killed" else "triage"))
    else:
        store.run(processes.end(agent, "exited" if how == "exited" else "failed"))

    assert store.questions() == []
    check_keys(Stored(execute))
    with pytest.raises(QuestionClosed, match="its process has ended"):
        store.answer("triage.1", "red", question=1)
    with pytest.raises(NotFound):
        store.answer("triage.1", "red")


def test_nobody_answers_after_its_time(store: Store, agent: ProcessHandle, execute: Execute) -> None:
    number = ask(store, agent)
    pass_time(store, execute, agent, number)

    with pytest.raises(QuestionClosed, match="its time is over"):
        store.answer("triage.1", "red", question=number)
    assert store.questions() == []
    found = store.run(questions.look(agent, "turn1:a", DAY_S))
    execute("HSET", agent.keys.questions, f"{number}/until", "9999999999")  # the clock was set back since

    assert found is not None
    assert found.answer == PersonAnswer(how="timeout", at_ms=found.answer.at_ms if found.answer else 0)
    with pytest.raises(QuestionClosed, match="its time is over"):
        store.answer("triage.1", "red", question=number)
    check_keys(Stored(execute))


def test_the_time_of_a_question_begins_again_if_the_clock_was_set_back(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    ask(store, agent, timeout_s=60.0)
    execute("HSET", agent.keys.questions, "1/until", "9999999999")

    found = store.run(questions.look(agent, "turn1:a", 60.0))

    assert found is not None
    [question] = store.questions()
    assert found.until == question.until
    assert question.until - question.asked_at == pytest.approx(60, abs=30)


def test_what_a_call_does_not_wait_for_any_more_takes_no_answer(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    ask(store, agent)
    ask(store, agent, "turn1:b")
    store.answer("triage.1", "red", question=2)

    store.run(python_state.begin(agent, "call", 1))
    store.run(python_state.end(agent, "call", None, withdrawn=[1, 2, 3]))

    assert store.questions() == []
    with pytest.raises(QuestionClosed, match="it was withdrawn"):
        store.answer("triage.1", "red", question=1)
    check_keys(Stored(execute))


def test_an_answer_makes_the_agent_ready_that_waits_for_it(store: Store, agent: ProcessHandle) -> None:
    numbers = [ask(store, agent), ask(store, agent, "turn1:b")]
    assert store.run(waiting.park(agent, [], 100.0, numbers))
    parked = store.run(process_records.record("fdstore", "triage.1"))

    answered = store.run(answering("red", question=1))

    assert (parked.state, parked.waiting_for, parked.worker) == ("waiting", ("person",), None)
    assert answered.wakes
    record = store.run(process_records.record("fdstore", "triage.1"))
    assert (record.state, record.waiting_for) == ("ready", ())


def test_an_answer_before_the_agent_waits_keeps_it_from_waiting(store: Store, agent: ProcessHandle) -> None:
    number = ask(store, agent)

    answered = store.run(answering("red"))

    assert not answered.wakes
    assert not store.run(waiting.park(agent, [], 100.0, [number]))


def test_the_end_of_a_child_does_not_wake_an_agent_that_waits_for_a_person_too(
    store: Store, agent: ProcessHandle
) -> None:
    number = ask(store, agent)
    child = store.run(processes.create_child(agent, [], state="ready"))
    assert store.run(waiting.park(agent, [child.id], None, [number]))

    woken = store.run(processes.cancel("fdstore", child.id)).woken

    record = store.run(process_records.record("fdstore", "triage.1"))
    assert (woken, record.waiting_for) == ((), ("person",))
    assert store.run(answering("red")).wakes


def test_the_sweep_wakes_an_agent_whose_question_nobody_answered(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    number = ask(store, agent, timeout_s=60)
    assert store.run(waiting.park(agent, [], 60.0, [number]))
    execute("ZADD", agent.keys.tree.leases, 1, "triage.1")

    assert store.run(leases.check_overdue(agent.keys)).decision == "wake"

    assert store.run(process_records.record("fdstore", "triage.1")).state == "ready"


def test_an_attempt_that_lost_its_lease_asks_nothing(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    execute("HSET", agent.keys.record, "lease_until", "0")
    store.run(leases.check_overdue(agent.keys))
    other = claim(store, "triage.1")

    with pytest.raises(Fenced):
        ask(store, agent)

    assert ask(store, other) == 1
    store.answer("triage.1", "red")  # whoever runs it


@pytest.mark.parametrize(
    ("question", "given", "problem"),
    [
        (plain(), {"approve": True}, "asks for a text"),
        (plain(), {}, "an answer is needed"),
        (plain(), {"text": " "}, "an answer is needed"),
        (plain(), {"choice": 1}, "no such choice"),
        (plain(choices=("a", "b")), {"choice": 3}, "there are: 1-2"),
        (plain(choices=("a", "b")), {"choice": True}, "no such choice"),
        (plain(choices=("a", "b")), {"choice": 1, "text": "a"}, "leave one of them out"),
        (plain(), {"text": "\ud83d"}, "surrogate"),
        (plain(), {"text": "a", "by": "a\nb"}, "printable"),
        (plain(), {"text": 1}, "must be a text"),
        (plain(), {"text": ["a"]}, "must be a text"),
        (approval(), {"text": "yes"}, "answer yes or no"),
        (approval(), {}, "yes or no"),
        (approval(), {"approve": "no"}, "True or False"),
        (approval(), {"approve": 1}, "True or False"),
        (approval(), {"approve": [False]}, "True or False"),
        (approval(), {"approve": True, "reason": "x"}, "is of a no"),
        (approval(), {"approve": False, "arguments": {}}, "are of a yes"),
        (approval(), {"approve": True, "arguments": [1]}, "a JSON object"),
        (approval(), {"approve": True, "arguments": {"n": float("nan")}}, "JSON"),
    ],
)
def test_an_answer_that_does_not_fit_its_question_is_refused(
    store: Store, agent: ProcessHandle, question: StoredQuestion, given: dict[str, Any], problem: str
) -> None:
    store.run(questions.ask(agent, "turn1:a", question))

    with pytest.raises(InvalidArgument, match=problem):
        store.answer("triage.1", **given)

    assert len(store.questions()) == 1


def test_one_of_several_questions_is_named(store: Store, agent: ProcessHandle) -> None:
    ask(store, agent)
    ask(store, agent, "turn1:b")

    with pytest.raises(InvalidArgument, match="2 questions: name one of 1, 2"):
        store.answer("triage.1", "red")
    with pytest.raises(NotFound, match=r"question 7 .* question 1, question 2"):
        store.answer("triage.1", "red", question=7)
    with pytest.raises(NotFound, match=r"process triage\.9"):
        store.answer("triage.9", "red")


def test_arguments_are_those_that_were_asked_about(store: Store, agent: ProcessHandle) -> None:
    asked = {"path": "a\x1b[2J", "n": 123456789012345678901234567890, "deep": [{"x": None}], "f": 1e300}
    store.run(questions.ask(agent, "turn1:a", approval(**asked)))

    [question] = store.questions()
    same = store.answer("triage.1", approve=True, arguments=dict(asked), by="ann")

    assert question.arguments == asked
    assert (question.kind, question.tool) == ("approval", "deploy")
    assert (same.approved, same.is_changed) == (True, False)


def test_a_number_is_no_flag_and_an_order_of_keys_no_change(store: Store, agent: ProcessHandle) -> None:
    for name in ("a", "b"):
        store.run(questions.ask(agent, f"turn1:{name}", approval(count=1, force=False)))

    flag = store.answer("triage.1", question=1, approve=True, arguments={"count": True, "force": 0})
    same = store.answer("triage.1", question=2, approve=True, arguments={"force": False, "count": 1})

    assert (flag.is_changed, same.is_changed) == (True, False)


def test_changed_arguments_are_in_the_answer(store: Store, agent: ProcessHandle) -> None:
    store.run(questions.ask(agent, "turn1:a", approval(path="a")))

    answer = store.answer("triage.1", approve=True, arguments={}, by="ann")

    assert (answer.approved, answer.is_changed, answer.arguments) == (True, True, {})


def test_a_process_has_a_bounded_number_of_open_questions(store: Store, agent: ProcessHandle) -> None:
    for number in range(questions.MAX_OPEN):
        ask(store, agent, f"turn1:{number}")

    with pytest.raises(InvalidArgument, match="100 questions of this process are open"):
        ask(store, agent, "turn1:more")

    assert ask(store, agent, "turn1:0") == 1
    store.answer("triage.1", "red", question=1)
    assert ask(store, agent, "turn1:more") == questions.MAX_OPEN + 1


@pytest.mark.parametrize(
    "damage",
    [
        ("HSET", "1/answer", ""),
        ("HSET", "1/answer", "{}"),
        ("HSET", "1/answer", '{"at_ms":5}'),
        ("HSET", "1/answer", '{"at_ms":5,"approved":true}'),
        ("HSET", "1/until", "soon"),
        ("HSET", "call/turn1:a", "99"),
        ("HDEL", "1/until"),
        ("HDEL", "1"),
    ],
    ids=" ".join,
)
def test_a_damaged_answer_is_no_answer_and_settles_nothing(
    store: Store, agent: ProcessHandle, execute: Execute, damage: tuple[str, ...]
) -> None:
    ask(store, agent)
    verb, *fields = damage
    execute(verb, agent.keys.questions, *fields)
    before = execute("HGETALL", agent.keys.questions)

    with pytest.raises(DamagedRecord, match=r"question .* of process triage\.1"):
        store.run(questions.look(agent, "turn1:a", DAY_S))

    assert execute("HGETALL", agent.keys.questions) == before
    execute("DEL", agent.keys.questions, agent.keys.tree.questions)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("1", "{"),
        ("1", '{"kind":"order","timeout_s":1}'),
        ("1", '{"kind":"approval","timeout_s":1,"arguments":[1]}'),
        ("1/until", "soon"),
        ("1/until", "1e999"),
        ("1/asked", "-1"),
    ],
)
def test_a_damaged_question_harms_itself_alone(
    store: Store, agent: ProcessHandle, execute: Execute, field: str, value: str
) -> None:
    ask(store, agent)
    ask(store, agent, "turn1:b")
    execute("HSET", agent.keys.questions, field, value)

    assert [each.number for each in store.questions()] == [2]
    of_process = store.run(people.questions_of("fdstore", "triage.1"))
    assert [each.number for each in of_process.questions] == [2]
    assert [each.what for each in of_process.unreadable] == ["question 1 of process triage.1"]
    with pytest.raises(DamagedRecord):
        store.answer("triage.1", "red", question=1)
    with pytest.raises(InvalidArgument, match=r"2 questions \(1 cannot be read\): name one of 2"):
        store.answer("triage.1", "red")
    assert store.answer("triage.1", "red", question=2).text == "red"
    with pytest.raises(DamagedRecord, match="question 1"):
        store.answer("triage.1", "red")
    [damage] = store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert "triage.1/1 cannot be read" in damage.said
    store.run(processes.cancel("fdstore", "triage"))


def test_who_asks_is_counted_without_what_is_not_a_question(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    ask(store, agent)
    ask(store, agent, "turn1:b")
    other = store.process("other")
    store.run(questions.ask(other.handle, "turn1:a", plain()))
    execute("ZADD", agent.keys.tree.questions, 0, "triage.1/x")

    found = store.run(people.who_asks("fdstore"))

    assert sorted((each.process, each.questions) for each in found) == [("other", 1), ("triage.1", 2)]
    assert sorted(store.run(live("fdstore")).asking, key=lambda each: each.process) == sorted(
        found, key=lambda each: each.process
    )
    execute("ZREM", agent.keys.tree.questions, "triage.1/x")


def test_a_damaged_time_of_a_question_hides_no_figure_of_its_tree(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    ask(store, agent)
    execute("ZADD", agent.keys.tree.questions, "-inf", "triage.1/1")

    usage = store.run(process_records.finished_trees("fdstore", ["triage"])).usage["triage"]

    assert (usage.live, usage.questions, usage.oldest_question) == (2, 1, None)


def test_members_that_are_no_questions_are_reported_and_left_out(
    store: Store, agent: ProcessHandle, execute: Execute
) -> None:
    ask(store, agent)
    for member in ("other.1/1", "triage.1/9", "\xff/1"):
        execute("ZADD", agent.keys.tree.questions, 1, member)

    found = store.run(people.open_questions("fdstore"))

    assert [each.number for each in found.questions] == [1]
    assert len(found.unreadable) == 2
    damage = store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert len(damage) == 3
    execute("ZREM", agent.keys.tree.questions, "other.1/1", "triage.1/9", "\xff/1")


def test_a_dropped_tree_leaves_no_question(store: Store, proc: Process, execute: Execute) -> None:
    store.run(questions.ask(proc.handle, "turn1:a", plain()))

    store.drop_tree("triage", kill=True)

    assert not [key for key in execute("KEYS", "*") if b":questions" in key]
    with pytest.raises(InvalidArgument, match="is a key of every tree"):
        store.process("questions")


def test_questions_cost_a_few_round_trips(store: Store, agent: ProcessHandle) -> None:
    for number in range(20):
        ask(store, agent, f"turn1:{number}")

    assert count_round_trips(store, questions.ask(agent, "turn2:a", plain()))[1] == 1
    assert count_round_trips(store, people.open_questions("fdstore"))[1] == 3
    assert count_round_trips(store, answering("red", question=3))[1] == 2


def test_what_cannot_be_asked_is_refused() -> None:
    for question, choices in [(" ", ()), ("x" * 10_001, ()), ("x", [""]), ("x", ["a"] * (MAX_CHOICES + 1))]:
        with pytest.raises(FDStoreError):
            questions.check_question(question, choices)
    questions.check_question("x", ["a"] * MAX_CHOICES)
