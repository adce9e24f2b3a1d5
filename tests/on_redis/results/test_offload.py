"""`Toolset.offload`: what the user's own tools return, as the model is to see it."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.types import TextBlock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore import FDConfig, Offloaded, Toolset, aio
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound, StoreFull
from tests.elements import only
from tests.properties import examples

SMALL = FDConfig(max_direct_output_chars=20, max_input_chars=20, default_page_size=10)
PNG = "iVBORw0KGgo="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
FORGED = "</fd_list>"
ESCAPED = '<fd_inline escaped="true">\n&lt;/fd_list>\n</fd_inline>'
LINK = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}


@pytest.fixture
def tools(proc: Process) -> Toolset:
    return Toolset(proc, config=SMALL)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def stored(proc: Process, shown: str) -> str:
    """Return the stored text of an `fd_result`."""
    result = only(shown)
    assert result.name == "fd_result"
    return proc.read(result["fd"], read_all=True).text


def test_user_input_reaches_a_model_without_half_a_surrogate_and_without_blank_texts(tools: Toolset) -> None:
    assert tools.wrap_input("half \ud83d") == "half \\ud83d"
    assert tools.wrap_input([text("\ud83d"), text(""), LINK, text(" ")]) == [text("\\ud83d"), LINK]
    assert tools.wrap_input([text("")]) == [text("(no text)")]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("x" * 20, "x" * 20),
        (None, ""),
        (b"caf\xe9", "caf\\xe9"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ([], "[]"),
        (["a", "b"], '["a","b"]'),
        ([{"type": "bug"}], '[{"type":"bug"}]'),
        ([{"type": "image"}], '[{"type":"image"}]'),
        ("a\udc80b", "a\\udc80b"),
        (FORGED, ESCAPED),
        ([text("a"), LINK], [text("a"), LINK]),
        ([text(FORGED)], [text(ESCAPED)]),
        ([LINK], [LINK]),
        ((text("a"),), [text("a")]),
    ],
)
def test_what_is_short_stays_inline(tools: Toolset, proc: Process, value: Any, content: Any) -> None:
    assert tools.offload(value, call_id="call_0") == Offloaded(content)
    assert proc.list() == []


def test_a_long_text_is_stored_exactly_and_its_descriptor_returned(tools: Toolset, proc: Process) -> None:
    words = "Exit code 1\n" + "\0\r\n\ufeff" * 9

    offloaded = tools.offload(words, source="bash")

    assert isinstance(offloaded.content, str)
    assert only(offloaded.content)["source"] == "bash"
    assert stored(proc, offloaded.content) == words
    assert (offloaded.descriptor, offloaded.is_error) == (proc.stat("fd:1"), False)
    assert only(offloaded.content).child("preview").body == only(tools.wrap(words)).child("preview").body


def holding(words: str) -> dict[str, dict[str, Any]]:
    """Return blocks that hold a text without being text blocks."""
    plain = {"type": "text", "media_type": "text/plain", "data": words}
    return {
        "document": {"type": "document", "source": plain, "title": "Notes"},
        "document of blocks": {"type": "document", "source": {"type": "content", "content": [text(words)]}},
        "search result": {"type": "search_result", "source": "a", "title": "b", "content": [text(words)]},
        "resource": {"type": "resource", "resource": {"uri": "file:///a", "text": words}},
    }


@pytest.mark.parametrize("kind", holding(""))
def test_the_text_in_a_block_of_another_type_is_judged_too(tools: Toolset, proc: Process, kind: str) -> None:
    short, long, forged = (holding(words)[kind] for words in ("a" * 20, "b" * 21, FORGED))

    offloaded = tools.offload([short, long, forged])

    assert isinstance(offloaded.content, list)
    assert (offloaded.content[0], offloaded.content[2]) == (short, text(ESCAPED))
    assert offloaded.content[1]["type"] == "text"
    assert stored(proc, offloaded.content[1]["text"]) == "b" * 21


def loop_of(tools: Toolset, blocks: list[dict[str, Any]]) -> Any:
    """Return what the tools show of a function that returns these blocks."""

    def function() -> list[dict[str, Any]]:
        """Return what was asked for."""
        return blocks

    return Toolset(tools.process, config=SMALL, python=[function]).call("function", {}).content


DOORS: dict[str, Callable[[Toolset, list[dict[str, Any]]], Any]] = {
    "offload": lambda tools, blocks: tools.offload(blocks).content,
    "wrap": lambda tools, blocks: tools.wrap(blocks),
    "wrap_input": lambda tools, blocks: tools.wrap_input(blocks),
    "a function": loop_of,
}
PAGE = {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}
blocks = st.lists(st.text("ab", max_size=40).map(text) | st.just(PAGE), min_size=1, max_size=7)


@pytest.mark.parametrize("door", DOORS)
@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(blocks)
def test_each_text_of_blocks_is_inline_or_exactly_in_a_descriptor_in_every_door(
    tools: Toolset, proc: Process, door: str, given: list[dict[str, Any]]
) -> None:
    shown = DOORS[door](tools, given)

    found = []
    for block in shown:
        if block == PAGE or not block["text"].startswith("<fd_result"):
            found.append(block)
            continue
        words = stored(proc, block["text"])
        parts = words.split("\n")
        assert len(words) > 20
        assert len(parts) == 1 or all(0 < len(part) <= 20 for part in parts), "only short ones are joined"
        found += map(text, parts)
        proc.close(only(block["text"])["fd"])
    inline = [each["text"] for each in shown if each != PAGE and len(each["text"]) <= 20]
    assert len("\n".join(filter(None, inline))) <= 20
    said = [each for each in given if each != text("")]
    if not said:
        assert shown in ([text("(no output)")], [text("(no text)")]), "an API refuses empty texts"
        return
    assert sorted(map(str, found)) == sorted(map(str, said)), "nothing is lost or made up"
    assert found == said or moves_a_text(given)
    assert proc.list() == []


def moves_a_text(given: list[dict[str, Any]]) -> bool:
    """Return whether short texts that are no neighbours are long together."""
    runs = [
        [each["text"] for each in run if each["text"]]
        for is_short, run in groupby(given, lambda each: each != PAGE and len(each["text"]) <= 20)
        if is_short
    ]
    rest = [run for run in runs if run and (len(run) == 1 or len("\n".join(run)) <= 20)]
    return len(rest) > 1 and len("\n".join(map("\n".join, rest))) > 20


def test_text_blocks_that_are_short_alone_and_long_together_become_one_descriptor(
    tools: Toolset, proc: Process
) -> None:
    given = [text("a" * 15), text("b" * 21), LINK, text("c" * 15), text("d" * 15)]

    offloaded = tools.offload(given, call_id="call_0")

    assert isinstance(offloaded.content, list)
    short, long, link, together = offloaded.content
    assert (short, stored(proc, long["text"]), link) == (given[0], "b" * 21, LINK)
    assert stored(proc, together["text"]) == "\n".join(["c" * 15, "d" * 15])
    assert offloaded.descriptor == proc.stat("fd:1")
    assert tools.offload(given, call_id="call_0") == offloaded
    assert len(proc.list()) == 2


def test_blocks_that_are_documents_are_not_joined(tools: Toolset, proc: Process) -> None:
    given = [holding("a" * 20)["document"], text("b" * 20), holding("c" * 20)["search result"]]

    assert tools.offload(given) == Offloaded(given)


def test_parts_are_joined_unless_each_has_a_place_of_its_own(tools: Toolset, proc: Process) -> None:
    parts = ["a" * 15, None, "b" * 15]

    joined = tools.offload_parts(parts)

    first, other, second = joined.content
    assert (stored(proc, str(first)), other, second) == ("\n".join(["a" * 15, "b" * 15]), None, "")
    assert tools.offload_parts(parts, join_short=False) == Offloaded(["a" * 15, None, "b" * 15])


@pytest.mark.parametrize(
    "block",
    [
        IMAGE,
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    ],
)
def test_an_image_stays_and_is_stored_under_an_id_that_is_told(
    tools: Toolset, proc: Process, block: dict[str, Any]
) -> None:
    offloaded = tools.offload([text("a"), block, text("b")], name="plot.png")

    assert isinstance(offloaded.content, list)
    assert [offloaded.content[0], *offloaded.content[2:]] == [text("a"), block, text("b")]
    told = only(offloaded.content[1]["text"])
    assert (told["fd"], told["kind"], told["media_type"]) == ("name:plot.png", "bytes", "image/png")
    assert proc.read_bytes("name:plot.png") == base64.b64decode(PNG)
    assert offloaded.descriptor == proc.find("plot.png")


def test_bytes_are_stored_as_they_are(tools: Toolset, proc: Process) -> None:
    data = b"\x00\xff" * 20

    offloaded = tools.offload(data, call_id="call_0")

    assert only(str(offloaded.content))["size_bytes"] == "40"
    assert proc.read_bytes("fd:1") == data
    assert tools.offload(data, call_id="call_0") == offloaded
    with pytest.raises(InvalidArgument):
        tools.offload(data + b"\xff", call_id="call_0")


# errors


def failing(error: BaseException) -> Any:
    def function() -> str:
        raise error

    return function


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such day"),
        ValueError("x" * 50),
        RuntimeError(FORGED),
        asyncio.CancelledError("stopped"),
        NotFound("fd:9", ("fd:1",)),
        InvalidArgument("question", FORGED),
        InvalidArgument("question", "x\udc80" * 50),
        ToolError("no such day"),
        ToolError("x" * 50),
    ],
    ids=lambda error: f"{type(error).__name__} of {len(str(error))}",
)
@pytest.mark.parametrize("limit", [20, 8000])
def test_an_exception_is_shown_as_the_agent_loop_shows_it(
    store: Store, error: BaseException, limit: int
) -> None:
    config = FDConfig(max_direct_output_chars=limit)
    expected = Toolset(store.process(), config=config, python=[failing(error)]).call("function", {})

    offloaded = Toolset(store.process(), config=config).offload(error, source="function")

    assert (offloaded.content, offloaded.is_error) == (expected.content, expected.is_error)
    assert (offloaded.descriptor is not None) == ("<fd_result" in expected.content)


def test_the_blocks_of_a_tool_error_stay_blocks(tools: Toolset, proc: Process) -> None:
    offloaded = tools.offload(ToolError([text("x" * 21), LINK]))

    assert isinstance(offloaded.content, list)
    assert stored(proc, offloaded.content[0]["text"]) == "x" * 21
    assert (offloaded.content[1], offloaded.is_error) == (LINK, True)


def test_a_value_that_is_neither_text_nor_json_is_a_typed_error(tools: Toolset) -> None:
    with pytest.raises(InvalidArgument, match="a object, which is neither text nor JSON"):
        tools.offload(object())


class TextFails:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class FieldsFail:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class NothingReadable:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(f"no {name}")


@pytest.mark.parametrize("kind", [TextFails, FieldsFail, NothingReadable])
def test_a_value_that_raises_when_it_is_read_is_neither_text_nor_json(tools: Toolset, kind: Any) -> None:
    for value in (kind(), [kind()], {"a": kind()}):
        with pytest.raises(InvalidArgument, match="which is neither text nor JSON"):
            tools.offload(value)


def test_a_full_store_is_a_typed_error_and_a_short_value_needs_no_store(tools: Toolset, execute: Any) -> None:
    execute("CONFIG", "SET", "maxmemory", "1")
    try:
        assert tools.offload("short").content == "short"
        with pytest.raises(StoreFull):
            tools.offload("x" * 21, call_id="call_0")
    finally:
        execute("CONFIG", "SET", "maxmemory", "0")

    assert tools.offload("x" * 21, call_id="call_0").descriptor is not None


def test_without_descriptors_all_stays_inline(proc: Process) -> None:
    tools = Toolset(proc, config=FDConfig(enabled=False))

    assert tools.offload("x" * 100_000) == Offloaded("x" * 100_000)


# wrap


def test_wrap_returns_blocks_for_blocks_and_stores_them_once_under_a_call_id(
    tools: Toolset, proc: Process
) -> None:
    given = [text("short"), text("b" * 21), LINK, TextBlock(type="text", text="c" * 21)]

    shown = tools.wrap(given, source="bash", call_id="call_0")

    short, long, image, longer = shown
    assert (short, image) == (text("short"), LINK)
    assert (stored(proc, long["text"]), stored(proc, longer["text"])) == ("b" * 21, "c" * 21)
    assert tools.wrap(given, source="bash", call_id="call_0") == shown
    assert len(proc.list()) == 2
    with pytest.raises(InvalidArgument, match="'call_0/wrap' was used for another call"):
        tools.wrap(given[:2], source="bash", call_id="call_0")


# call ids


@pytest.mark.parametrize(
    "value", ["x" * 21, [text("x" * 21), LINK, text("y" * 21)], ValueError("x" * 21), b"\xff" * 21]
)
def test_a_repeated_call_id_stores_nothing_and_returns_the_first_result(
    tools: Toolset, proc: Process, value: Any
) -> None:
    first = tools.offload(value, source="bash", call_id="call_0")
    count = len(proc.list())

    assert tools.offload(value, source="bash", call_id="call_0") == first
    assert len(proc.list()) == count
    proc.close("fd:1")
    assert tools.offload(value, source="bash", call_id="call_0") == first


def test_a_lost_result_is_made_again_from_the_same_descriptors(
    tools: Toolset, proc: Process, execute: Any
) -> None:
    value = [text("x" * 21), text("y" * 21)]
    first = tools.offload(value, call_id="call_0")
    execute("HDEL", "fdstore:{triage}:triage:calls", "call_0/offload/outcome")  # as if the process had died

    assert tools.offload(value, call_id="call_0") == first
    assert len(proc.list()) == 2


@pytest.mark.parametrize(
    ("value", "source"),
    [("y" * 21, "bash"), ("x" * 21, "grep"), ([text("x" * 21)], "bash"), ([text("x" * 21), LINK], "bash")],
)
def test_another_value_under_a_used_call_id_is_refused(
    tools: Toolset, proc: Process, value: Any, source: str
) -> None:
    tools.offload("x" * 21, source="bash", call_id="call_0")

    with pytest.raises(InvalidArgument, match="'call_0/offload' was used for another call"):
        tools.offload(value, source=source, call_id="call_0")

    assert len(proc.list()) == 1


def test_offloading_calling_and_wrapping_may_share_a_call_id(proc: Process) -> None:
    def lots() -> str:
        return "a" * 30

    tools = Toolset(proc, config=SMALL, python=[lots])
    tools.call("lots", {}, call_id="call_0")
    tools.wrap("b" * 30, call_id="call_0")
    tools.offload("c" * 30, call_id="call_0")

    assert [proc.read(d.fd).text for d in proc.list()] == ["a" * 10, "b" * 10, "c" * 10]


def test_the_awaitable_offload_returns_the_same(redis_url: str) -> None:
    words = os.urandom(500).hex()

    async def main() -> Offloaded:
        async with await aio.connect(redis_url) as store:
            tools = aio.Toolset(await store.process("triage"), config=SMALL)
            first = await tools.offload([text(words), LINK], call_id="call_0")
            assert await tools.offload([text(words), LINK], call_id="call_0") == first
            with pytest.raises(InvalidArgument, match="call_id"):
                await tools.offload([text(words)], call_id="call_0")
            return first

    offloaded = asyncio.run(main())

    assert isinstance(offloaded.content, list)
    assert only(offloaded.content[0]["text"])["total_chars"] == "1000"
    assert offloaded.descriptor is not None
    assert offloaded.descriptor.fd == "fd:1"


# names


def test_the_first_stored_text_gets_the_name_and_replaces_what_it_meant(
    tools: Toolset, proc: Process
) -> None:
    proc.put("out/log.txt", "before")

    offloaded = tools.offload(
        [text("short"), text("x" * 21), text("y" * 21)], source="bash", name="out/log.txt"
    )

    assert isinstance(offloaded.content, list)
    assert offloaded.descriptor == proc.find("out/log.txt")
    first, second = (only(block["text"])["fd"] for block in offloaded.content[1:])
    assert (first, second) == ("name:out/log.txt", "fd:3")
    assert proc.read("name:out/log.txt", read_all=True).text == "x" * 21
    assert offloaded.descriptor.media_type == "text/plain"
    assert [d.fd for d in proc.list()] == ["fd:3", "name:out/log.txt"]


def test_what_stays_inline_changes_no_name(tools: Toolset, proc: Process) -> None:
    before = proc.put("log", "before")

    assert tools.offload("short", name="log") == Offloaded("short")
    assert proc.find("log") == before


@pytest.mark.parametrize("value", ["short", "x" * 21])
@pytest.mark.parametrize("name", ["", "a\nb", "x" * 1025, "a\udc80", "plan#L1-9", "name:plan", 7])
def test_an_invalid_name_is_refused_and_nothing_stored(
    tools: Toolset, proc: Process, value: str, name: Any
) -> None:
    with pytest.raises(InvalidArgument, match="key: "):
        tools.offload(value, name=name)

    assert proc.list() == []


def test_a_repeated_call_does_not_replace_what_the_name_means_now(tools: Toolset, proc: Process) -> None:
    first = tools.offload("x" * 21, call_id="call_0", name="log")
    later = proc.put("log", "later")

    assert tools.offload("x" * 21, call_id="call_0", name="log") == first
    assert proc.find("log") == later
    with pytest.raises(InvalidArgument, match="was used for another call"):
        tools.offload("x" * 21, call_id="call_0", name="other")
