"""Runs are found by the words of their tasks, answers, errors and sources."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.agents.loop.conversation import Result, encode_entry
from fdstore.client import Process, Store
from fdstore.model.records import Unreadable
from fdstore.store.addresses import Address
from fdstore.store.contents import contents
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks, journal, leases, processes
from fdstore.store.processes.asks import Answered, Ask, AskAnswer, AskSettings
from fdstore.store.views import finding, overview, word_search
from fdstore.store.views.word_search import WordMatch, exact, search
from fdstore.testing import call, say
from fdstore.text.excerpts import WordExcerpt
from fdstore.tools.process_task import SpawnTask, encode_task
from tests.on_redis.running_agents import running, tool
from tests.round_trips import count_round_trips


def places(store: Store, query: str, **options: Any) -> list[str]:
    return [found.place for found in store.run(search("fdstore", query, **options))]


def agent(proc: Process, query: str) -> Process:
    brief = encode_task(SpawnTask(query=query))
    return Process(proc.store, proc.store.run(processes.create_child(proc.handle, [], brief=brief)))


@pytest.fixture
def build(store: Store) -> Process:
    """A tree with a word in each place."""
    build = store.process("build")
    build.create("text", source="logs/nightly-build.txt")
    store.run(processes.end(agent(build, "Count the refunds of May").handle, answer="There are 12 Refunds"))
    failed = agent(build, "Count the refunds of June")
    store.run(processes.end(failed.handle, "failed", exit_code=None, reason="max_turns: 5 answers"))
    return build


def test_each_kind_of_word_is_found_with_its_place(store: Store, build: Process) -> None:
    assert places(store, "May") == ["task of build.1"]
    assert places(store, "THERE") == ["answer of build.1"]
    assert places(store, "turns") == ["error of build.2"]
    assert places(store, "nightly") == ["source of build fd:1"]
    assert store.run(search("fdstore", "june")) == [
        WordMatch(
            process="build.2",
            found_in="task",
            fd=None,
            state="failed",
            program=None,
            excerpt=WordExcerpt(text="Count the refunds of June", marks=((21, 25),)),
        )
    ]


def marked(store: Store, query: str) -> list[str]:
    """The excerpts of what is found, with the marks as brackets."""
    return [
        "".join(f"[{part}]" if is_marked else part for part, is_marked in found.excerpt.parts)
        for found in store.run(search("fdstore", query))
    ]


def test_each_match_has_the_words_around_it_marked(store: Store, build: Process) -> None:
    build.put("weekly-plan", "text", source="Editor")
    failed = encode_entry(Result(call="a", content="<e>\nPermission denied: quota</e>", is_error=True))
    store.run(journal.append(build.handle, 0, [failed]))

    assert marked(store, "may") == ["Count the refunds of [May]"]
    assert marked(store, "there refund") == ["[There] are 12 [Refund]s"]
    assert marked(store, "turns answers") == ["max_[turns]: 5 [answers]"]
    assert marked(store, "nightly") == ["logs/[nightly]-build.txt"]
    assert marked(store, "plan") == ["weekly-[plan]"]
    assert marked(store, "denied") == ["<e> Permission [denied]: quota</e>"]


def test_the_beginning_of_a_long_answer_is_read(store: Store, tmp_path: Any) -> None:
    long = "There are 12 Refunds. " + "They were paid in May. " * 2000
    with running(store, lambda asked: say(long), tmp_path) as agents:
        agents.launch("Count")
        agents.run_all("solo")

    [found] = marked(store, "refunds paid")
    assert found.startswith("There are 12 [Refunds]. They were [paid] in May.")
    assert found.endswith("…")


def test_a_process_must_have_all_words_and_the_places_with_most_of_them_are_told(
    store: Store, build: Process
) -> None:
    assert places(store, "refund") == ["task of build.1", "answer of build.1", "task of build.2"]
    assert places(store, "refunds count") == ["task of build.1", "task of build.2"]
    assert places(store, "may there") == ["task of build.1", "answer of build.1"]
    assert places(store, "may june") == []
    assert places(store, "funds") == []
    assert places(store, "logs/nightly-build.txt") == ["source of build fd:1"]


@pytest.mark.parametrize("query", ["", " ", "*", "\0", "[", "(\xff", "\ud800", '"\r\nFLUSHALL', "w " * 500])
def test_a_query_without_known_words_finds_nothing(store: Store, build: Process, query: str) -> None:
    assert places(store, query) == []


def test_an_agent_is_found_by_what_it_was_told_and_what_it_said(store: Store, tmp_path: Any) -> None:
    with running(store, lambda asked: say("Zwölf Bestellungen"), tmp_path) as agents:
        agents.launch("Wie viele Aufträge?")
        agents.run_all("solo")

    assert places(store, "aufträge") == ["task of solo"]
    assert places(store, "ZWÖLF best") == ["answer of solo"]
    assert store.run(search("fdstore", "zwölf"))[0].program == "solo"


def test_an_agent_is_found_by_the_errors_of_its_calls(store: Store, tmp_path: Any) -> None:
    turns = iter([call("read_fd", fd="name:lost-invoice"), call("breaks", words="kaputt"), say("Gone")])
    with running(store, lambda asked: next(turns), tmp_path) as agents:
        agents.launch("Look", tools=("read_fd",), python=(tool("breaks"),))
        agents.run_all("solo")

    assert places(store, "lost-invoice exist") == ["error of solo"]
    assert places(store, "kaputt") == ["error of solo"]
    assert store.run(search("fdstore", "invoice"))[0].state == "exited"


def test_a_process_is_found_by_the_errors_of_its_asks(store: Store, build: Process) -> None:
    settings = AskSettings(model="any", max_chars=9)
    asked = [Ask(0, "Which?"), Ask(1, "Whose?", ["ten of them"]), Ask(2, "When?"), Ask(3, "Where?")]
    [lane] = store.run(asks.start(build.handle, "call", asked, settings))
    keys = process_keys(store.prefix, lane)
    claimed = store.run(leases.claim(keys, "w", 600))
    assert claimed is not None
    of = ProcessHandle(keys, claimed.limits, claimed.attempt)
    begun = store.run(asks.take_next(of, build.handle, "call", width=2, running=(), answered=()))
    answered = [
        Answered(number=0, answer=AskAnswer(text="Nobody knows.")),
        Answered(number=2, answer=AskAnswer(error="model_failed: the model answered 403 forbidden")),
    ]

    ended = store.run(asks.take_next(of, build.handle, "call", width=0, running=(), answered=answered))
    store.run(asks.fail_rest(of, build.handle, "call", (), "quota_exceeded: tree_model_calls"))

    assert (sorted(begun.asks), ended.how) == ([0, 2], "wait")
    assert places(store, "403 forbidden") == ["error of build"]
    assert marked(store, "403 forbidden") == ["model_failed: the model answered [403] [forbidden]"]
    assert marked(store, "too_large characters")[0].startswith("[too_large]: this ask has 11 [characters]")
    assert marked(store, "model_calls") == ["quota_exceeded: tree_[model_calls]"]
    assert places(store, "nobody") == []


def test_an_error_of_a_call_costs_no_further_round_trip_and_a_repeat_adds_nothing(store: Store) -> None:
    build = store.process("build")
    failed = encode_entry(Result(call="a", content="Permission denied: quota", is_error=True))
    fine = encode_entry(Result(call="b", content="all is granted"))

    _, trips = count_round_trips(store, journal.append(build.handle, 0, [failed, fine]))
    _, trips_of_fine = count_round_trips(store, journal.append(build.handle, 2, [fine]))
    assert trips == trips_of_fine
    store.run(journal.append(build.handle, 3, [failed]))
    store.run(journal.append(build.handle, 3, [failed]))

    assert places(store, "denied quota") == ["error of build"]
    assert places(store, "granted") == []


def test_what_is_closed_or_gone_is_not_found(store: Store, build: Process, execute: Any) -> None:
    child = build.child(share=["fd:1"])
    fd = child.create("text", source="passing").fd
    child.put("notes", "text", source="noted")
    assert places(store, "passing") == [f"source of {child.id} {fd}"]
    assert places(store, "noted") == places(store, "notes") == [f"source of {child.id} name:notes"]
    child.close(fd)
    assert places(store, "passing") == []
    child.end()
    assert places(store, "noted") == []
    store.drop_tree("build", kill=True)
    assert places(store, "refunds") == []


def test_trees_used_last_come_first_and_results_are_bounded(store: Store, execute: Any) -> None:
    for number in range(3):
        proc = store.process(f"t{number}")
        execute("ZADD", "fdstore:trees", 9_000_000_000 + number, proc.id)
        for _ in range(2):
            proc.create("text", source="same")
        agent(proc, "the same")

    assert places(store, "same", most=3) == [
        *("source of t2 fd:1", "source of t2 fd:2", "task of t2.1"),
        *("source of t1 fd:1", "source of t1 fd:2"),
    ]
    assert len({each.split()[2] for each in places(store, "same")}) == 6


def test_only_the_trees_used_last_are_searched_some_in_one_round_trip(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_search, "MAX_TREES", 4)
    monkeypatch.setattr(word_search, "TREES_AT_ONCE", 2)
    for number in range(5):
        store.process(f"t{number}").create("text", source="same")

    found, trips = count_round_trips(store, search("fdstore", "same"))
    nothing, trips_in_vain = count_round_trips(store, search("fdstore", "other words"))

    newest = store.run(overview.recent_names("fdstore", 4)).names
    assert [each.process for each in found] == newest
    assert trips == 1 + 2 * 2 + 1  # the last one reads the texts around the words of all
    assert (nothing, trips_in_vain) == ([], 1 + 2)


def test_few_places_of_one_process_are_told(store: Store, proc: Process) -> None:
    for _ in range(20):
        proc.create("text", source="same")

    assert len(places(store, "same")) == word_search.PLACES_OF_ONE


def test_damaged_words_hide_nothing_of_other_trees(store: Store, build: Process, execute: Any) -> None:
    store.process("other").create("text", source="words")
    execute(
        "ZADD", "fdstore:{other}:search:words", 0, "refunds", 0, "refunds task build.1", 0, b"refunds \xff x"
    )
    assert places(store, "refunds count") == ["task of build.1", "task of build.2"]
    execute("SET", "fdstore:{other}:search:words", "x")
    damaged: list[Unreadable] = []

    assert places(store, "refunds count", damaged=damaged) == ["task of build.1", "task of build.2"]
    assert ["other" in each.what + each.problem for each in damaged] == [True, True]
    execute("DEL", "fdstore:{other}:search:words")


def test_ids_and_urls_name_what_exists(store: Store, build: Process) -> None:
    def named(query: str) -> Any:
        return store.run(exact("fdstore", query))

    build.put("plan.md", "text")
    part = named("fdstore://build/fd:1?lines=2-3")

    assert named("build.2") == "build.2"
    assert named("fdstore://build.2/") == "build.2"
    assert named("fdstore://build/name:plan.md") == Address("build", "name:plan.md")
    assert (part.fd, part.part.start, part.part.count) == ("fd:1", 2, 2)
    missing = ("build.9", "other", "fdstore://build/fd:9", "fdstore://build.1/fd:1", "fdstore://x y", "a b")
    assert [named(each) for each in missing] == [None] * 6


def test_find_lists_what_the_words_find_beside_names(store: Store, build: Process) -> None:
    store.run(contents.create(build.handle, "text", "refunds.csv"))

    found = store.run(finding.find("fdstore", "refunds"))
    by_url = store.run(finding.find("fdstore", "fdstore://build/fd:2"))

    assert [each.fd for each in found.descriptors] == ["fd:2"]
    assert [each.place for each in found.words] == ["task of build.1", "answer of build.1", "task of build.2"]
    assert by_url.descriptors == found.descriptors
    by_process = store.run(finding.find("fdstore", "fdstore://build.1"))
    assert [each.id for each in by_process.processes] == ["build.1"]
    assert store.run(finding.find("fdstore", "refund?")).words == []
