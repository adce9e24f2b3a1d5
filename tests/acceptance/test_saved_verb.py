"""`fdstore saved` shows what was kept out of contexts and what was read back."""

from __future__ import annotations

import msgspec

from fdstore import Toolset

LONG = "a line of a long log\n" * 5000


def test_saved_shows_each_tool_the_total_and_a_sentence(command, store):
    nothing = command("saved")
    tools = Toolset(store.process("triage"), meter="monday")
    tools.offload(LONG, source="Bash")
    tools.offload(LONG * 2, source="Grep")
    tools.call("read_fd", {"fd": "fd:1", "start": 2})

    shown = command("saved")
    as_json = command("saved", "triage", "--by", "session", "--json")
    absent = command("saved", "triaje")

    assert (nothing.code, nothing.out) == (0, "")
    assert "nothing was counted" in nothing.err
    assert "Toolset(meter=NAME)" in nothing.err  # a loop without it looks as if nothing were saved
    head, *rows, total, empty, sentence = shown.lines
    assert head.split() == ["TOOL", "KEPT", "CHARS", "~TOKENS", "READ", "CHARS", "~TOKENS", "NET", "~TOKENS"]
    assert [row.split()[0] for row in rows] == ["Grep", "Bash", "read_fd"]
    assert (total.split()[0], empty) == ("total", "")
    assert sentence.startswith("About ")
    assert "tokens of 2 outputs kept out of the context" in sentence
    [line] = as_json.lines
    record = msgspec.json.decode(line)
    assert (record["session"], record["kept"], record["read"]) == ("monday", 2, 1)
    assert record["net_tokens"] == record["kept_tokens"] - record["read_tokens"] > 50_000
    assert absent.code == 1
    assert absent.err.startswith("fdstore: not_found: process triaje")
