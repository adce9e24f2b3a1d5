"""`fdstore search`, beside the grep of this machine: the same lines, the same exit codes."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

from tests.acceptance.conftest import CommandResult, peak_bytes
from tests.waiting import PATIENCE_S

TEXT = "".join(
    f"{number}: {['ok', 'ERROR disk', 'ok, no error', 'Error ERROR'][number % 4]} é {'x' * (number % 7)}\n"
    for number in range(1, 60)
)
COLOURS = re.compile("\x1b\\[[0-9;]*[mK]")


def grep(text: str, *options: str) -> CommandResult:
    done = subprocess.run(
        ["grep", "-E", *options], input=text.encode(), capture_output=True, timeout=PATIENCE_S, check=False
    )
    return CommandResult(done.returncode, done.stdout, done.stderr.decode())


@pytest.mark.parametrize(
    "options",
    [
        ["ERROR"],
        ["-i", "-c", "error"],
        ["-v", "ERROR|ok"],
        ["-v", "-c", "ERROR"],
        ["-o", "ERR|disk|x+"],
        ["-A", "1", "-B", "2", "^2.*ERROR"],
        ["-C", "1", "-m", "3", "disk"],
        ["-c", "-m", "3", "disk"],
        ["-A", "2", "-m", "1", "-v", "disk"],
        ["nothing like it"],
    ],
    ids=" ".join,
)
def test_search_has_the_output_and_exit_code_of_grep(command, proc, options):
    proc.create(TEXT, page_size=100)

    ours = command("search", "triage", "1", *options[-1:], *options[:-1])
    theirs = grep(TEXT, "-n", *options)

    assert (ours.code, ours.out, ours.err) == (theirs.code, theirs.out, "")


def test_search_without_line_numbers_prints_only_the_lines(command, proc):
    proc.create(TEXT)

    assert command("search", "triage", "1", "disk", "-N").out == grep(TEXT, "disk").out


def test_search_prints_more_lines_than_one_library_call_returns(command, store):
    text = "".join(f"hit {number}\n" for number in range(30_000))
    store.process("triage").create(text)

    ended = command("search", "triage", "1", "hit", "-N")

    assert (ended.code, ended.out, ended.err) == (0, text, "")


def test_search_colours_matches_and_escapes_control_characters_on_a_terminal(command, proc):
    proc.create("a \x1b[2J hit\n" + "y" * 3000 + "hit" + "z" * 3000 + "\n")
    command.environment.pop("NO_COLOR", None)

    shown = command.on_terminal("search", "triage", "1", "hit", columns=200)
    plain = command.on_terminal("search", "triage", "1", "hit", "--color", "never")
    command.environment["NO_COLOR"] = "1"
    unwanted = command.on_terminal("search", "triage", "1", "hit")
    piped = command("search", "triage", "1", "hit")

    assert shown.out.count("\x1b[1;31mhit\x1b[m") == 2
    assert COLOURS.sub("", shown.out) == plain.out == unwanted.out
    assert "\x1b" not in plain.out
    assert plain.lines[0] == "1:a \\u{1b}[2J hit"
    assert re.fullmatch(
        r"2:\[2,\d+ characters left out\]y+hitz+\[1,\d+ characters left out\]", plain.lines[1]
    )
    assert piped.out == "1:a \x1b[2J hit\n2:" + "y" * 3000 + "hit" + "z" * 3000 + "\n"


def test_search_as_json_has_the_requested_context_lines(command, proc):
    proc.create(TEXT)

    found = command("search", "triage", "1", "ERROR", "-A1", "-m2", "--json").documents
    counted = command("search", "triage", "1", "ERROR", "-v", "-c", "--json").document

    assert [(each["fd"], each["line"], "column" in each) for each in found] == [
        *(("fd:1", 1, True), ("fd:1", 2, False)),
        *(("fd:1", 3, True), ("fd:1", 4, False)),
    ]
    assert counted == {"fd": "fd:1", "matches": 29, "hits": 29, "lines_searched": 59}


def test_search_as_json_counts_the_hits_of_a_line_that_has_several(command, proc):
    proc.create("a hit\nhit, hit, hit\nnone\n")

    one, three = command("search", "triage", "1", "h.t", "--json").documents
    counted = command("search", "triage", "1", "h.t", "-c", "--json").document
    cut = command("search", "triage", "1", "h.t", "-c", "-m1", "--json").document

    assert ("hits" in one, three["hits"]) == (False, 3)
    assert (counted["matches"], counted["hits"]) == (2, 4)
    assert (cut["matches"], "hits" in cut) == (1, False)


def test_search_as_json_has_a_line_for_each_of_many_hits(command, proc):
    proc.create("a hit\n" * 20_000 + "é" * 3000 + "hit\n")

    lines = command("search", "triage", "1", "hit", "--json").lines

    assert len(lines) == 20_001  # whatever a model's search may show
    assert json.loads(lines[-1]) == {
        "fd": "fd:1",
        "line": 20_001,
        "text": "é" * 3000 + "hit",
        "column": 3001,
    }


def test_search_stops_reading_at_the_match_limit(command, store):
    # reading on would hit the deleted pages and fail
    made = store.process("triage").create("hit\n" + "x\n" * 3_000_000)
    store.run(_delete_page(store, made.pages))

    ended = command("search", "triage", "1", "hit", "-m", "1")

    assert (ended.code, ended.out, ended.err) == (0, "1:hit\n", "")
    assert "store_lost_data" in command("search", "triage", "1", "hit").err


def _delete_page(store, page):
    [removed] = yield [("HDEL", f"{store.prefix}:{{triage}}:triage:fd:1:pages", page)]
    assert removed == 1


def peak_bytes_of_search(command, *words: str) -> tuple[int, int]:
    """Return the peak memory of a search before its last output, and the number of lines it printed."""
    with command.start("search", "triage", "1", *words, fresh=True) as process:
        peak = lines = 0
        while piece := process.stdout.read(1 << 20):
            lines += piece.count(b"\n")
            peak = max(peak, peak_bytes(process.pid))
    assert process.returncode == 0
    return peak, lines


@pytest.mark.thorough("its size takes long")
def test_search_of_a_large_content_uses_little_memory_with_any_number_of_matches(command, tmp_path):
    (tmp_path / "large").write_bytes(b"a line that will be found, again and again\n" * 300_000)
    command("put", "triage", "large")

    peak, lines = peak_bytes_of_search(command, "found", "-C", "1")

    assert lines == 300_000
    assert peak < 64_000_000  # Python and its modules take 30


@pytest.mark.long
@pytest.mark.timeout(600)
def test_search_of_1_gb_uses_little_memory_with_any_number_of_matches(command, tmp_path):
    with (tmp_path / "large").open("wb") as file:
        for _ in range(1000):
            file.write(b"x" * 999_979 + b"\n" + b"a line to be found\n")
    command("put", "triage", "large")

    peak, lines = peak_bytes_of_search(command, "found|x{300}", "-C", "1")

    assert lines == 2000
    assert peak < 150_000_000
