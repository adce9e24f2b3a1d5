"""No answer to a model is longer than `max_read_chars` and its frame, whatever is stored or asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fdstore import FDConfig, Toolset
from fdstore.client import Process, Store
from fdstore.results.fd_results import render_fd
from fdstore.results.tool_outcome import Started
from fdstore.store.processes import processes
from fdstore.tools.toolbox import Toolbox
from tests.elements import only
from tests.on_redis.conformance.calling import PROCESS_TOOLS, TEXT_TOOLS, context_of, fields_of

MAX_READ_CHARS = 20_000
FRAME_CHARS = 9000
"""Room for the attributes of an element: one name of 1024 characters, each shown as an entity."""

ERROR_CHARS = 2 * FRAME_CHARS
CONFIG = FDConfig(max_read_chars=MAX_READ_CHARS)
LONG = "x" * 300_000
MANY = 150
HELD = "fd:2"
"""The first descriptor of the crowded process: the number before it is that of a named text."""


def long_name(number: int) -> str:
    return f"{number:04}" + '"&<' * 330


@pytest.fixture
def crowded(proc: Process) -> Process:
    """A process with many long names, ids, and children, and a text that is one page."""
    for number in range(MANY):
        proc.put(long_name(number), f"text {number}", source="<&" * 100)
        proc.create(f"text {number}", source='"' * 200)
    proc.put("page", "words and more words " * 20_000, page_size=10_000_000)
    for _ in range(MANY):
        proc.child().end()
    return proc


@pytest.fixture
def toolbox(crowded: Process, tmp_path: Path) -> Toolbox:
    for name in ("adder", *("y" * 40 + str(number) for number in range(50))):
        (tmp_path / f"{name}.toml").write_text('[model]\nname = "any"\n')
    programs = {path.stem: path for path in sorted(tmp_path.glob("*.toml"))}
    roots = {"export_root": tmp_path, "preload_root": tmp_path}
    enabled = [*TEXT_TOOLS, *PROCESS_TOOLS]
    return Toolbox(
        context_of(crowded, enabled, programs=programs, config=CONFIG, commands=("grep",), **roots)
    )


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_fds", {"count": 100_000}),
    ("list_fds", {"start": 7, "count": 2**53}),
    ("list_fds", {"start": 2**53}),
    ("read_fd", {"fd": "fd:99999"}),
    ("read_fd", {"fd": f"name:{'q' * 1000}"}),
    ("read_fd", {"fd": LONG}),
    ("read_fd", {"fd": "name:page"}),
    ("read_fd", {"fd": "name:page", "read_all": True}),
    ("read_fd", {LONG: 1}),
    ("search_fd", {"fd": "name:page", "pattern": "words"}),
    ("search_fd", {"fd": "fd:99999", "pattern": "words"}),
    ("search_fd", {"fd": HELD, "pattern": LONG}),
    ("search_fd", {"fd": HELD, "pattern": "(" * 10_000}),
    ("search_fd", {"fd": HELD, "pattern": '"' * 1000}),
    ("write_fd", {"fd": "fd:99999", "data": "more"}),
    ("write_fd", {"fd": LONG, "data": LONG}),
    ("write_fd", {"data": LONG}),
    ("put_fd", {"text": "words " * 50_000}),
    ("fd_to_file", {"fd": HELD, "file_path": LONG}),
    ("fd_to_file", {"fd": "fd:99999", "file_path": "out.txt"}),
    ("close_fd", {"fd": "fd:99999"}),
    ("spawn", {"program_name": LONG, "query": "go"}),
    ("spawn", {"program_name": "adder", "query": "go", "additional_preload_fds": ["fd:99999"]}),
    ("spawn", {"program_name": "adder", "query": "go", "additional_preload_files": [LONG]}),
    ("pipe", {"commands": [LONG]}),
    ("pipe", {"commands": ["grep x"] * 1000}),
    ("wait", {"target": "elsewhere.1"}),
    ("wait", {"target": LONG}),
    ("kill", {"target": "elsewhere.1"}),
    ("kill", {"target": "fd:99999"}),
    (LONG, {}),
]


def filled(name: str, text: str, fd: str) -> dict[str, Any]:
    """Return arguments of a tool: this descriptor where it takes one, and this text in all others."""
    found: dict[str, Any] = {}
    for field, schema in fields_of(name).items():
        one = fd if field in ("fd", "a", "b") else text
        if schema["type"] == "string" and "enum" not in schema:
            found[field] = one
        elif schema["type"] == "array" and schema["items"]["type"] == "string":
            found[field] = [one] * schema.get("maxItems", 10)
    return found


def test_no_answer_is_longer_than_one_read(store: Store, toolbox: Toolbox) -> None:
    offered = [definition["name"] for definition in toolbox.definitions]
    texts = ((HELD, '"<&' * 300), (HELD, LONG), (LONG, LONG))
    assert HELD in store.run(toolbox.start("list_fds", {})).text

    of_every_tool = [(name, filled(name, text, fd)) for fd, text in texts for name in offered]

    for name, arguments in CALLS + of_every_tool:
        result = store.run(toolbox.start(name, arguments))

        assert not isinstance(result, Started), name
        most = ERROR_CHARS if result.is_error else MAX_READ_CHARS + FRAME_CHARS
        call = f"{name[:20]}({str(arguments)[:80]})"
        assert len(result.text) <= most, f"{call} answers {len(result.text)} characters"


@pytest.mark.thorough("many descriptors")
def test_the_pages_of_a_long_list_have_every_descriptor_once(crowded: Process) -> None:
    tools = Toolset(crowded, config=CONFIG)

    found: list[str] = []
    start: int | None = 1
    while start is not None:
        listed = only(tools.call("list_fds", {"start": start, "count": 100_000}).text)
        lines = (listed.body or "").split("\n")
        assert int(listed["count"]) == len(lines)
        found += [line.partition(" sealed ")[0] for line in lines]
        start = int(listed["next"]) if "next" in listed.attributes else None

    assert len(found) == len(set(found)) == int(listed["total"]) == 2 * MANY + 1


def test_a_page_longer_than_one_read_is_previewed_by_its_beginning(store: Store, crowded: Process) -> None:
    context = Toolset(crowded, config=CONFIG)._toolbox.context

    shown = store.run(render_fd(context, "name:page")).text

    assert len(only(shown).child("preview").body or "") <= MAX_READ_CHARS


def test_the_answers_of_many_processes_fit_in_one_read_and_the_others_are_stored(
    store: Store, proc: Process, toolbox: Toolbox
) -> None:
    children = [proc.child() for _ in range(4)]
    for number, child in enumerate(children):
        store.run(processes.end(child.handle, answer=f"answer {number} " * 1000))

    result = store.run(toolbox.finished(Started(tuple(child.id for child in children))))
    again = store.run(toolbox.finished(Started(tuple(child.id for child in children))))

    assert len(result.text) <= 2 * MAX_READ_CHARS
    assert result.text.count("<process_result") == 4
    assert "answer 0 " * 1000 in result.text
    stored = [element for element in result.text.split("\n") if element.startswith("<fd_result")]
    assert len(stored) >= 2
    assert again.text == result.text
