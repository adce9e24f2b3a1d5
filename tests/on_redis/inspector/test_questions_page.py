"""Questions of agents in the browser: shown with what an answer does, answered by those who may."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fdstore.client import Process
from fdstore.store.processes import processes
from tests.on_redis.inspector.conftest import HOSTILE
from tests.on_redis.inspector.inspected import ORIGIN, Get, Inspect
from tests.on_redis.inspector.questions import agent_of, ask
from tests.on_redis.inspector.run_page import Read

PATH = "/process/triage.1/questions/1"


@pytest.fixture(autouse=True)
def _no_queue(redis_url: str, execute: Callable[..., Any]) -> Iterator[None]:
    """No worker receives the wake-ups of answers."""
    yield
    execute("DEL", "fdq:fdstore:queue")


@pytest.fixture
def asking(proc: Process) -> Process:
    """A tree whose agent asks which of two colours."""
    proc.create("the plan\n" * 400, source="plan.md")
    running = agent_of(proc, ("t1", "ask_person", {"question": "Which colour?"}))
    ask(proc, running, text="Which colour?", choices=("red", "blue"), fd="fd:1")
    return proc


@pytest.fixture
def approving(proc: Process) -> Process:
    """A tree whose agent wants to deploy."""
    proc.create("text\n")
    running = agent_of(proc, ("t1", "deploy", {"to": "prod", "n": 1.0}))
    ask(proc, running, tool="deploy", arguments={"to": "prod", "n": 1.0})
    return proc


def post(inspect: Inspect, path: str = PATH, origin: str | None = ORIGIN, **fields: str) -> httpx2.Response:
    """Return the response to a form, of an inspector that may answer."""
    data = {name.rstrip("_"): value for name, value in fields.items()}
    headers = {} if origin is None else {"Origin": origin}
    found: httpx2.Response = inspect(
        lambda client: client.post(path, data=data, headers=headers), may_answer=True
    )
    return found


def outcome(get: Get, path: str = PATH) -> Any:
    """Return what became of a question, as the twin of its page says."""
    return get(f"{path}.json").json()["answer"]


@pytest.mark.parametrize("path", ["/questions", "/tree/triage", "/process/triage.1", PATH])
def test_a_question_is_shown_where_one_looks_for_it_with_how_to_answer(
    get: Get, asking: Process, path: str
) -> None:
    page = get(path).text

    text = Read(page).text
    assert "Which colour?" in text
    assert "the plan" in text
    assert "1 red" in text
    assert "2 blue" in text
    assert "fdstore answer triage.1 --question 1 --choice N" in text
    assert '<form class="answering"' not in page
    assert 'href="/process/triage.1/fd/1"' in page
    assert '<b class="asked" data-asked="1">' in page


def test_one_click_leads_to_the_call_in_the_conversation(get: Get, asking: Process) -> None:
    assert 'href="/process/triage.1/call?key=t1"' in get("/questions").text

    found, unknown = get("/process/triage.1/call?key=t1", "/process/triage.1/call?key=turn9:x")

    assert (found.status_code, found.headers["location"]) == (303, "/process/triage.1?at=2-1#pane")
    assert unknown.headers["location"] == "/process/triage.1#last"
    of_code = get("/process/triage.1/call?key=t1/5")
    assert of_code.headers["location"] == found.headers["location"]


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example"])
def test_an_answer_from_another_page_is_refused(
    inspect: Inspect, get: Get, asking: Process, origin: str | None
) -> None:
    assert post(inspect, origin=origin, do="choice-1", as_="ann").status_code == 403
    assert outcome(get) is None


def test_nothing_is_answered_without_the_permission(inspect: Inspect, get: Get, asking: Process) -> None:
    async def visit(client: httpx2.AsyncClient) -> httpx2.Response:
        return await client.post(PATH, data={"do": "choice-1", "as": "ann"}, headers={"Origin": ORIGIN})

    refused = inspect(visit, may_kill=True)

    assert refused.status_code == 403
    assert "--allow answer" in refused.text
    assert outcome(get) is None


def test_a_choice_and_a_text_are_taken_with_the_name_and_the_door(
    inspect: Inspect, get: Get, asking: Process
) -> None:
    done = post(inspect, do="choice-2", text="", as_="Ann Smith")

    assert (done.status_code, done.headers["location"]) == (303, PATH)
    assert "fdstore_name=Ann%20Smith" in done.headers["set-cookie"]
    given = outcome(get)
    assert (given["choice"], given["text"], given["by"], given["door"]) == (
        2,
        "blue",
        "Ann Smith",
        "inspector",
    )
    assert asking.store.questions() == []
    page = Read(get(PATH).text).text
    assert "Answered by Ann Smith" in page
    assert "Nothing waits for a person" in get("/questions").text

    ask(asking, agent_of(asking, ("t1", "x", {})), text="And now?")
    again = get("/questions", headers={"Cookie": "fdstore_name=Ann%20Smith"}, may_answer=True)
    assert 'name="as" value="Ann Smith"' in again.text


def test_a_program_that_asks_for_json_gets_the_answer_or_the_error(inspect: Inspect, asking: Process) -> None:
    async def visit(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        headers = {"Origin": ORIGIN, "Accept": "application/json"}
        data = {"do": "answer", "text": "green\r\nor so", "as": "ann"}
        return [await client.post(PATH, data=data, headers=headers) for _ in range(2)]

    first, second = inspect(visit, may_answer=True)

    assert first.json()["text"] == "green\nor so"
    assert (second.status_code, second.json()["error"]["type"]) == (409, "conflict")


def test_a_second_answer_is_told_who_was_first_and_loses_nothing(
    inspect: Inspect, get: Get, asking: Process
) -> None:
    asking.store.answer("triage.1", "green", by="bob", door="cli")

    late = post(inspect, do="answer", text="My long answer <b>", as_="ann")

    assert late.status_code == 409
    page = Read(late.text).text
    assert "'bob' answered it already" in page
    assert "Answered by bob" in page
    assert "My long answer <b>" in page
    assert outcome(get)["text"] == "green"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"do": "answer", "text": " ", "as_": "ann"}, "an answer is needed"),
        ({"do": "answer", "text": "red"}, "your name is needed"),
        ({"do": "choice-3", "as_": "ann"}, "there is no such choice"),
        ({"do": "yes", "as_": "ann"}, "asks for a text"),
        ({"as_": "ann"}, "use one of the buttons"),
    ],
)
def test_a_mistake_is_shown_in_place(
    inspect: Inspect, get: Get, asking: Process, fields: dict[str, str], said: str
) -> None:
    refused = post(inspect, **fields)

    assert refused.status_code == 400
    assert said in Read(refused.text).text
    assert '<form class="answering"' in refused.text
    assert outcome(get) is None


def test_an_approval_runs_with_what_was_asked_unless_it_was_changed(
    inspect: Inspect, get: Get, approving: Process
) -> None:
    page = get(PATH, may_answer=True).text
    shown = page.partition('name="arguments"')[2].partition(">")[2].partition("</textarea>")[0]
    assert "&#34;to&#34;: &#34;prod&#34;" in shown

    post(inspect, do="yes", arguments='{\r\n  "to": "prod",\r\n  "n": 1.0\r\n}', reason="", as_="ann")

    given = outcome(get)
    assert (given["approved"], given.get("arguments")) == (True, None)


def test_changed_arguments_are_checked_and_what_was_typed_stays(
    inspect: Inspect, get: Get, approving: Process
) -> None:
    broken = '{"to" "staging"}'
    refused = post(inspect, do="yes", arguments=broken, as_="ann")

    assert refused.status_code == 400
    assert "this is not JSON: line 1, column 7" in Read(refused.text).text
    assert "<details open>" in refused.text
    assert "&#34;to&#34; &#34;staging&#34;}" in refused.text
    assert 'value="ann"' in refused.text
    for wrong in ("[1]", '{"n": NaN}', '{"n": ' + "9" * 5000 + "}", "[" * 5000):
        assert post(inspect, do="yes", arguments=wrong, as_="ann").status_code == 400
    assert outcome(get) is None

    assert post(inspect, do="yes", arguments='{"to": "staging"}', as_="ann").status_code == 303

    given = outcome(get)
    assert (given["approved"], given["arguments"]) == (True, {"to": "staging"})
    assert "with other arguments" in get(PATH).text


def test_a_no_has_its_reason(inspect: Inspect, get: Get, approving: Process) -> None:
    post(inspect, do="no", reason="not on a Friday", arguments="{broken", as_="ann")

    assert (outcome(get)["approved"], outcome(get)["reason"]) == (False, "not on a Friday")
    assert "Denied by ann" in Read(get(PATH).text).text


def test_changed_arguments_of_a_built_in_tool_must_fit_it(inspect: Inspect, get: Get, proc: Process) -> None:
    proc.create("text\n")
    running = agent_of(proc, ("t1", "fd_to_file", {"fd": "fd:1", "file_path": "a.txt"}))
    ask(proc, running, tool="fd_to_file", arguments={"fd": "fd:1", "file_path": "a.txt"})

    wrong = '{"fd": "fd:1", "path": "b.txt"}'
    refused = post(inspect, do="yes", arguments=wrong, as_="ann")

    assert refused.status_code == 400
    assert "is not an argument of this tool" in Read(refused.text).text
    assert outcome(get) is None


@pytest.fixture
def exporting(proc: Process) -> Callable[..., None]:
    """`exporting(file_path, **arguments)` has an agent ask whether it may write the text "one, three"."""
    proc.create("one\nthree\n")

    def begin(file_path: str, **arguments: Any) -> None:
        asked = {"fd": "fd:1", "file_path": file_path, **arguments}
        ask(proc, agent_of(proc, ("t1", "fd_to_file", asked)), tool="fd_to_file", arguments=asked)

    return begin


def change(get: Get, **options: Any) -> Any:
    return get(f"{PATH}.json", **options).json()["card"]["change"]


def test_an_approval_shows_what_it_would_overwrite(
    get: Get, exporting: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "plan.txt").write_text("one\ntwo <b>\n")
    exporting("plan.txt")

    unseen, seen = change(get), change(get, export_root=str(tmp_path))

    assert (unseen["seen"], unseen["rows"]) == ("unknown", None)
    assert "not seen here" in Read(get(PATH).text).text
    assert (seen["seen"], seen["removed"], seen["added"]) == ("present", 1, 1)
    assert [(row["kind"], row["text"]) for row in seen["rows"][1:]] == [
        ("same", "one"),
        ("removed", "two <b>"),
        ("added", "three"),
    ]
    assert "overwrites what is there" in Read(get(PATH, export_root=str(tmp_path)).text).text
    assert sorted(each.name for each in tmp_path.iterdir()) == ["plan.txt"]


@pytest.mark.parametrize(
    ("arguments", "seen", "refused"),
    [
        ({"file_path": "new.txt"}, "absent", False),
        ({"file_path": "new.txt", "create": False}, "absent", True),
        ({"file_path": "plan.txt", "exist_ok": False}, "present", True),
        ({"file_path": "plan.txt", "mode": "append"}, "present", False),
        ({"file_path": "data.bin"}, "present", False),
        ({"file_path": "../secret"}, "unknown", False),
        ({"file_path": "link.txt"}, "unknown", False),
        ({"file_path": ".env"}, "unknown", False),
        ({"file_path": "deep/er/new.txt"}, "absent", False),
    ],
)
def test_nothing_outside_the_export_root_is_read(
    get: Get,
    exporting: Callable[..., None],
    tmp_path: Path,
    arguments: dict[str, Any],
    seen: str,
    refused: bool,
) -> None:
    root = tmp_path / "out"
    root.mkdir()
    (tmp_path / "secret").write_text("SECRET\n")
    (root / ".env").write_text("SECRET\n")
    (root / "plan.txt").write_text("one\n")
    (root / "data.bin").write_bytes(b"\xff\x00")
    (root / "link.txt").symlink_to(tmp_path / "secret")
    exporting(**arguments)

    page = get(PATH, export_root=str(root))
    found = change(get, export_root=str(root))

    assert page.status_code == 200
    assert "SECRET" not in page.text
    assert (found["seen"], found["is_refused"]) == (seen, refused)


def test_a_pipeline_that_wants_approval_is_shown_as_its_command_line(get: Get, proc: Process) -> None:
    proc.create("text\n")
    asked = {"commands": ["grep -n 'a b'", "sort"], "in_fd": "fd:1"}
    ask(proc, agent_of(proc, ("t1", "pipe", asked)), tool="pipe", arguments=asked)

    assert "grep -n 'a b' | sort" in Read(get(PATH).text).text


@pytest.mark.parametrize("path", ["/questions", "/tree/triage", "/process/triage.1", PATH])
def test_the_words_of_an_agent_stay_words(get: Get, proc: Process, path: str) -> None:
    proc.create(HOSTILE, source=HOSTILE)
    running = agent_of(proc, ("t1", "x", {}))
    ask(proc, running, text=HOSTILE, choices=(HOSTILE, 'Yes" onclick=alert(3)'), fd="fd:1")
    ask(
        proc, agent_of(proc, ("t1", "x", {})), "t2", tool="x<i>", arguments={HOSTILE: [HOSTILE, "\ud83d"[:0]]}
    )

    html = get(path, may_answer=True).text

    page = Read(html)
    assert "alert(1)" in page.text
    assert not {"img", "iframe", "object", "i", "b onclick"} & set(page.tags)
    assert page.tags.count("script") == html.count('<script src="/static/')
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "style"]
    assert not [v for _, name, v in page.attributes if name in ("href", "src") and "javascript:" in v]
    assert not {"\x1b", "\u202e"} & set(page.text)


def test_a_damaged_question_is_named_and_hides_no_other(
    get: Get, asking: Process, execute: Callable[..., Any]
) -> None:
    asking.create("x")
    other = agent_of(asking, ("t1", "x", {}))
    ask(asking, other, text="And which size?")
    execute("HSET", "fdstore:{triage}:triage.1:questions", "1", '{"kind":"question","timeout_s":-1}')

    listed, tree, process, one = get("/questions", "/tree/triage", "/process/triage.1", PATH)

    for page in (listed, tree):
        assert page.status_code == 200
        assert "And which size?" in page.text
        assert "1 record cannot be read" in page.text
    assert "1 record cannot be read" in process.text
    assert one.status_code == 500


def test_questions_that_take_no_answer_say_why(get: Get, inspect: Inspect, asking: Process) -> None:
    asking.store.run(processes.cancel(asking.store.prefix, "triage"))

    page = get(PATH, may_answer=True)
    late = post(inspect, do="choice-1", as_="ann")

    assert "its process has ended" in page.text
    assert '<form class="answering"' not in page.text
    assert late.status_code == 409
    assert get("/process/triage.1/questions/7").status_code == 404


def test_many_questions_are_shown_in_parts(get: Get, proc: Process) -> None:
    proc.create("x")
    for number in range(23):
        ask(proc, agent_of(proc, ("t1", "x", {})), text=f"Question {number}?")

    first, rest = (json.loads(page.text) for page in get("/questions.json", "/questions.json?from=20"))

    assert (len(first["cards"]), first["next"], first["total"]) == (20, 20, 23)
    assert (len(rest["cards"]), rest["next"]) == (3, None)
    tree = get("/tree/triage").text
    assert "23 questions wait for a person" in tree
    assert 'href="/questions?tree=triage">All 23 questions</a>' in tree


def test_one_damaged_question_hides_no_other_one(
    asking: Process, get: Get, execute: Callable[..., Any]
) -> None:
    other = agent_of(asking, ("t1", "ask_person", {"question": "Which size?"}))
    ask(asking, other, text="Which size?")
    execute("HSET", "fdstore:{triage}:triage.1:questions", "2", "{", "2/until", "9999999999", "open", "1 2")
    execute("ZADD", "fdstore:{triage}:questions", 2, "triage.1/2")

    for path in ("/questions", "/tree/triage", "/process/triage.1"):
        shown = get(path).text
        assert "Which colour?" in shown, path
        assert "question 2 of process triage.1" in shown, path
    assert "Which size?" in get("/questions").text
    assert get(PATH).status_code == 200
    assert "question 2 of process triage.1" in get("/process/triage.1/questions/2").text


def test_the_strip_says_who_waits_for_people_and_how_to_answer(asking: Process, get: Get) -> None:
    shown = get("/").text

    strip = shown[shown.index('id="strip"') :].partition("</section>")[0]
    assert "1 question waits for a person: 1 of triage.1" in strip
    assert "<code>fdstore questions</code>" in strip
