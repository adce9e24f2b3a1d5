"""Events of Codex and of Gemini CLI."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fdstore.errors import InvalidArgument
from fdstore.hosts.hooks import claude, codex, gemini
from fdstore.hosts.hooks.hosts import HOSTS, read_event
from tests.hook_events import after_tool

LONG = "x" * 8001
LIMIT = 8000


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def codex_event(response: Any, tool: str = "mcp__github__list") -> dict[str, Any]:
    return after_tool(tool, response, tool_input={"query": "is:open"})


@pytest.mark.parametrize(
    ("response", "stored"),
    [
        (LONG, LONG),
        ({"content": [text(LONG)], "isError": False}, LONG),
        ({"content": [text("a"), text("b"), text(LONG)]}, [text("a\nb"), text(LONG)]),
        ({"content": [text(LONG)], "structuredContent": {"result": LONG}}, LONG),
        ({"content": [], "structuredContent": LONG}, LONG),
        ({"structuredContent": {"result": LONG}}, LONG),
        (
            {"content": [text("a"), {"type": "resource", "resource": {"uri": "file:///a", "text": LONG}}]},
            [text("a"), text(LONG)],
        ),
        (
            {"content": [text("short")], "structuredContent": {"rows": LONG}},
            '{\n  "rows": "' + LONG + '"\n}',
        ),
    ],
)
def test_codex_gets_the_text_that_its_model_would_see_replaced(response: Any, stored: Any) -> None:
    output = codex.output_of(codex_event(response), LIMIT)

    assert output is not None
    assert output.value == stored
    assert output.source == "mcp__github__list: is:open"
    assert output.answer("STUB") == {"decision": "block", "reason": "STUB"}


@pytest.mark.parametrize("name", ["structuredContent", "structured_content"])
@pytest.mark.parametrize("before", ["", "\\ud83d", "\\ud83d\\ude00"])
def test_a_structured_result_in_codex_keeps_its_numbers_as_they_are_written(name: str, before: str) -> None:
    numbers = (
        '{"b": 1e5, "d": 0.10, "f": 1.00000000000000000001, "g": 123456789012345678901234567890, "h": -1e400}'
    )
    event = codex_event({"content": [], name: "HERE"}, "mcp__x__y")
    data = json.dumps(event).replace('"HERE"', f'[{numbers}, "{before}{LONG}"]').encode()

    output = codex.output_of(read_event(data), LIMIT)

    assert output is not None
    stored = str(output.value)
    assert [line.strip().rstrip(",") for line in stored.splitlines()[2:7]] == numbers.strip("{}").split(", ")
    assert stored.startswith("[\n  {\n    ")
    assert output.call_id


@pytest.mark.parametrize("read", ["codex", "claude", "gemini"])
def test_an_event_with_a_number_beyond_all_floats_is_read(read: str) -> None:
    event = json.dumps(codex_event([text(LONG)])).replace('"is:open"', "1e400").encode()

    assert b"1e400" in event
    assert (HOSTS[read](read_event(event), LIMIT) is None) == (read == "gemini")


@pytest.mark.parametrize(
    "wrong", [b"[1e400, NaN]", b'{"a": 1e400, "b": Infinity}', b'{"a": 1e400', b'{"a": 1e400}x']
)
def test_what_is_not_json_beside_such_a_number_is_refused(wrong: bytes) -> None:
    with pytest.raises(InvalidArgument, match="it is not JSON"):
        read_event(wrong)


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Bash", f"Warning: truncated output (original token count: 27224)\n{LONG}"),
        ("Bash", "x" * 8000),
        ("mcp__shots__take", {"content": [text(LONG), {"type": "image", "data": "aGk="}]}),
        ("mcp__fdstore__read_fd", {"content": [text(LONG)]}),
        ("mcp__x__y", {"content": []}),
    ],
)
def test_what_codex_has_cut_or_holds_pictures_or_is_ours_stays(tool: str, response: Any) -> None:
    assert codex.output_of(codex_event(response, tool), LIMIT) is None


SEVERAL = ["short", "a" * 9000, "b" * 9000, "few", "words"]
JUDGED = ["short", "a" * 9000, "b" * 9000, "few\nwords"]


def test_the_text_blocks_of_an_mcp_tool_in_codex_are_judged_one_by_one() -> None:
    blocks = [{"type": "text", "text": text} for text in SEVERAL]

    output = codex.output_of(codex_event({"content": blocks}, "mcp__x__y"), LIMIT)

    assert output is not None
    assert [block["text"] for block in output.value] == JUDGED
    assert output.answer(output.value)["reason"] == "\n".join(JUDGED)


@pytest.mark.parametrize(
    ("tool", "response", "said"),
    [
        ("mcp_github_list", {"llmContent": LONG, "error": {"message": "no such repository"}}, "failed"),
        (
            "run_shell_command",
            {"llmContent": f"Output: {LONG}\nExit Code: 2\nPGID: 7"},
            "failed",
        ),
        ("run_shell_command", {"llmContent": f"Output: Exit Code: 2\n{LONG}\nExit Code: 0"}, "succeeded"),
        ("run_shell_command", {"llmContent": LONG}, "succeeded"),
    ],
)
def test_gemini_is_told_whether_the_call_succeeded(tool: str, response: Any, said: str) -> None:
    event = {"hook_event_name": "AfterTool", "tool_name": tool, "tool_response": response}

    output = gemini.output_of(event, LIMIT)

    assert output is not None
    assert (
        output.answer("STUB")["reason"] == f"the call has {said}; its output is long, so it was stored:\nSTUB"
    )


def test_a_long_resource_in_an_output_of_claude_code_is_taken_and_a_text_as_json_is_that_text() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": LONG}}
    taken = claude.output_of(after_tool("mcp__files__read", [resource]), LIMIT)
    structured = claude.output_of(after_tool("mcp__files__read", json.dumps(LONG)), LIMIT)

    assert taken is not None
    assert taken.value == [resource]
    assert structured is not None
    assert structured.value == [text(LONG)]


def test_the_parts_of_an_output_in_gemini_are_judged_one_by_one() -> None:
    output = gemini.output_of(gemini_event([{"text": text} for text in SEVERAL]), LIMIT)

    assert output is not None
    assert [block["text"] for block in output.value] == [*JUDGED[:3], "fewwords"]


def test_blocks_that_are_short_alone_and_long_together_are_taken_by_every_host() -> None:
    blocks = [{"type": "text", "text": "x" * 4000} for _ in range(3)]

    of_claude = claude.output_of(after_tool("mcp__x__y", blocks), LIMIT)
    of_codex = codex.output_of(codex_event({"content": blocks}, "mcp__x__y"), LIMIT)

    assert of_claude is not None
    assert of_codex is not None
    assert (of_claude.value, of_codex.value) == (blocks, "\n".join(["x" * 4000] * 3))


def test_calls_that_are_numbered_anew_are_different_calls() -> None:
    first, again, other = (
        codex.output_of(codex_event(response), LIMIT) for response in (LONG, LONG, f"{LONG}y")
    )

    assert first is not None
    assert again is not None
    assert other is not None
    assert first.call_id == again.call_id != other.call_id


def test_a_call_without_an_id_of_its_host_has_none() -> None:
    output = codex.output_of({**codex_event(LONG), "tool_use_id": None}, LIMIT)

    assert output is not None
    assert output.call_id is None


def gemini_event(content: Any, tool: str = "run_shell_command", **fields: Any) -> dict[str, Any]:
    response = {"llmContent": content, "returnDisplay": "..."}
    return {**after_tool(tool, response), "hook_event_name": "AfterTool", **fields}


@pytest.mark.parametrize("content", [LONG, {"text": LONG}, [{"text": LONG[:4000]}, LONG[4000:]]])
def test_gemini_gets_its_text_replaced_and_is_told_that_the_call_succeeded(content: Any) -> None:
    output = gemini.output_of(gemini_event(content), LIMIT)

    assert output is not None
    assert output.value == LONG
    answer = output.answer("STUB")
    assert answer["decision"] == "deny"
    assert answer["reason"].endswith(":\nSTUB")
    assert "succeeded" in answer["reason"]


@pytest.mark.parametrize(
    "event",
    [
        gemini_event("x" * 8000),
        gemini_event([{"text": LONG}, {"inlineData": {"data": "aGk="}}]),
        gemini_event(LONG, tool="read_file"),
        gemini_event(LONG, tool="mcp_fdstore_read_fd"),
        gemini_event(LONG, tool="mcp_x_page", mcp_context={"tool_name": "read_fd", "server_name": "x"}),
        gemini_event(LONG, hook_event_name="BeforeTool"),
        gemini_event(LONG, tool_response=LONG),
    ],
)
def test_what_gemini_reads_itself_or_is_short_or_ours_stays(event: dict[str, Any]) -> None:
    assert gemini.output_of(event, LIMIT) is None
