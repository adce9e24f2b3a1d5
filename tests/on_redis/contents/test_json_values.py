"""A value of a JSON content is a range of characters, wherever a part can be named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NoSuchValue, NotFound, NotText
from tests.elements import only
from tests.memory import assert_takes_less
from tests.on_redis.contents.test_page_cost import cost_of
from tests.on_redis.programs.test_run_python import run, tools_of

FOUND = {
    "query": "storage/é",
    "results": [{"id": n, "abstract": f"abstract {n}: é", "tags": ["a", "b"]} for n in range(300)],
}
TEXT = json.dumps(FOUND, indent=1, ensure_ascii=False)


def test_a_value_is_read_as_the_characters_that_it_is(proc: Process) -> None:
    for page_size in (7, 4000):
        d = proc.create(TEXT, page_size=page_size)

        part = proc.read(f"{d.fd}#J/results/299/abstract")

        assert part.text == '"abstract 299: é"'
        first, last = map(int, part.chars.split("-"))
        assert TEXT[first - 1 : last] == part.text
        assert (part.mode, part.start, part.count) == ("char", first, len(part.text))
        assert proc.read(f"{d.fd}#J").text == TEXT
        assert json.loads(proc.read(f"{d.fd}#J/results").text) == FOUND["results"]


def test_a_value_is_extracted_searched_exported_and_compared_as_any_part(
    proc: Process, tmp_path: Path
) -> None:
    proc.put("found.json", TEXT, page_size=100)
    proc.create(TEXT.replace("abstract 7:", "abstract seven:"))

    copy = proc.extract("name:found.json#J/results/7")
    hits = proc.search("name:found.json#J/results/8", "abstract")
    written = proc.export("name:found.json#J/results/9/tags", tmp_path / "tags.json")
    same = proc.diff("name:found.json#J/results/8", "fd:2#J/results/8")
    differs = proc.diff("name:found.json#J/results/7", "fd:2#J/results/7")

    assert json.loads(proc.read(copy.fd).text) == FOUND["results"][7]
    assert copy.origin is not None
    assert copy.origin.fd == "name:found.json"
    assert [hit.text.strip() for hit in hits.hits] == ['"abstract": "abstract 8: é",']
    assert json.loads((tmp_path / "tags.json").read_text("utf-8")) == ["a", "b"]
    assert written.char_count == len(proc.read("name:found.json#J/results/9/tags").text)
    assert same == ""
    assert '+   "abstract": "abstract seven: é",' in differs.split("\n")


def test_what_is_not_there_and_what_is_not_json_are_told_apart(proc: Process) -> None:
    proc.create(TEXT)
    proc.create('{"a": [1,\n}')
    proc.create(b"\xff{}", media_type="application/json")

    with pytest.raises(NotFound, match="/results/300/id does not exist; fd:1#J/results is an array of 300"):
        proc.read("fd:1#J/results/300/id")
    with pytest.raises(InvalidArgument, match="fd:2 is not JSON: a value is needed at line 2, character 11"):
        proc.read("fd:2#J/a")
    with pytest.raises(NotText):
        proc.read("fd:3#J/a")
    with pytest.raises(NotFound, match="fd:9"):
        proc.read("fd:9#J/a")
    with pytest.raises(InvalidArgument, match="ends in #J/a"):
        proc.put("data#J/a", "{}")


def test_a_name_means_the_content_that_it_has_when_it_is_read(proc: Process) -> None:
    proc.put("x.json", '{"a": "first"}')
    first = proc.read("name:x.json#J/a").text
    proc.put("x.json", '{"long": "long", "a": "second"}')

    assert (first, proc.read("name:x.json#J/a").text) == ('"first"', '"second"')


def test_an_open_stream_of_json_lines_is_read_as_far_as_it_goes(proc: Process) -> None:
    stream = proc.open_stream(source="events")
    stream.write('{"id": 1}\n{"id": 2}\n{"id":')
    stream.flush()

    assert proc.read(f"{stream.fd}#J/1/id").text == "2"
    with pytest.raises(InvalidArgument, match="ends before a value"):
        proc.read(f"{stream.fd}#J/5/id")

    stream.write(" 3}\n")
    stream.end()
    assert proc.read(f"{stream.fd}#J/2/id", wait=5.0).text == "3"
    assert proc.read(f"{stream.fd}#J").text == '{"id": 1}\n{"id": 2}\n{"id": 3}'


def test_the_text_is_read_once_to_find_a_value(store: Store, execute: Any) -> None:
    proc = store.process()
    d = proc.create(TEXT, page_size=1000)

    _, first, sent = cost_of(execute, lambda: proc.read(f"{d.fd}#J/results/3/id"))
    again, calls, sent_again = cost_of(execute, lambda: proc.read(f"{d.fd}#J/results/3/id"))
    _, _, of_chars = cost_of(execute, lambda: proc.read(f"{d.fd}#C{again.start}-{again.start}"))

    assert sent > len(TEXT)
    assert sent_again == of_chars < 2000
    assert sum(calls.values()) < sum(first.values())


class Document:
    """A JSON document of records that is made while it is read."""

    def __init__(self, records: int) -> None:
        self._pieces = self._made(records)

    def _made(self, records: int) -> Iterator[bytes]:
        yield b'{"results": ['
        for number in range(records):
            yield json.dumps({"id": number, "text": "x" * 1000}).encode() + b",\n"
        yield b'{"id": -1, "text": "' + b"y" * 1_200_000 + b'"}], "end": true}'

    def read(self, size: int = -1) -> bytes:
        block = b""
        while len(block) < 100_000 and (piece := next(self._pieces, b"")):
            block += piece
        return block


@pytest.mark.thorough("a bound of memory, at many megabytes")
def test_memory_does_not_grow_with_the_text(proc: Process) -> None:
    d = proc.ingest(Document(7_000), source="found")

    def read(attempt: int) -> None:
        """Read values of places that are not known yet, behind nearly the whole text."""
        number = 6999 - attempt
        assert proc.read(f"{d.fd}#J/results/{number}/id").text == str(number)
        assert proc.read(f"{d.fd}#J/end").text == "true"

    assert_takes_less(d.bytes / 3, read)


# --- as a model names it


def test_models_read_search_extract_and_pass_on_values(proc: Process) -> None:
    def echo(text: str) -> str:
        return text

    tools = Toolset(proc, enabled=["read_fd", "search_fd", "diff_fd"], python=[echo])
    proc.create(TEXT)

    read = tools.call("read_fd", {"fd": "fd:1#J/results/5/id"})
    cut = tools.call("read_fd", {"fd": "fd:1#J/results/5", "extract_to_new_fd": True})
    more = tools.call("search_fd", {"fd": "fd:1#J/results", "pattern": "abstract", "max_matches": 2})
    lines = tools.call("search_fd", {"fd": "fd:1#J/results/5", "pattern": "tags", "extract_to_new_fd": True})
    missing = tools.call("read_fd", {"fd": "fd:1#J/results/5/ids"})
    passed = tools.call("echo", {"text": "<{{fd:1#J/query}}> {{ fd:1#J/results/5/tags/0 }}"})

    assert only(read.content).body == "5"
    assert only(cut.content)["mode"] == "char"
    assert json.loads(proc.read("fd:2").text) == FOUND["results"][5]
    searched = only(more.content)
    following = tools.call("search_fd", {"fd": searched["more"], "pattern": "abstract"})
    assert int(searched["matches"]) == 300 == int(only(following.content)["matches"]) + 2
    assert "the 1 match of a search in fd:1" in lines.content
    assert only(missing.content)["type"] == "not_found"
    assert only(missing.content)["fd"] == "fd:1"
    assert "fd:1#J/results/5 is an object with 'id', 'abstract', 'tags'" in missing.content
    assert passed.content == '<"storage/é"> "a"'


def test_code_takes_values_and_passes_them_on(proc: Process) -> None:
    proc.create(TEXT)

    shown = run(
        tools_of(proc), "part = fd('fd:1#J/results/5')\nprint(part.ref, part.text()[-1], part.total_lines)"
    )

    chars = proc.read("fd:1#J/results/5").chars
    assert shown == f"fd:1#C{chars} }} 8"


def test_a_refused_pointer_names_what_is_wrong() -> None:
    error = NoSuchValue("fd:1#J/a", "fd:1#J", "an array of 2")

    assert (error.type, error.known, error.args) == ("not_found", (), ("fd:1#J/a", "fd:1#J", "an array of 2"))
