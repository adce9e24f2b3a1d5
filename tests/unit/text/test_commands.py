"""Pipelines as models write them, and the meaning of exit codes."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument, UnknownProgram
from fdstore.text.commands import MAX_COMMAND_BYTES, MAX_STAGES, fatal_signal, parse, pipeline_exit_code
from fdstore.text.utf8 import HEAD_BYTES, TextOrBytes, Utf8Text

ALLOWED = ("grep", "sort", "uniq", "awk", "sed", "cut")

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
codes = st.lists(st.sampled_from([0, 1, 2, 127, 137, 141, 143, 255]), min_size=1, max_size=6)


def argvs(*lines: str) -> list[tuple[str, ...]]:
    return [command.argv for command in parse(lines, ALLOWED)]


# --- words


def test_each_line_is_a_stage_split_as_a_shell_splits_words() -> None:
    assert argvs("grep -n 'two words'", "sort  -r", 'cut -d "|" -f2') == [
        ("grep", "-n", "two words"),
        ("sort", "-r"),
        ("cut", "-d", "|", "-f2"),
    ]


@given(st.lists(words, max_size=5))
def test_quoted_arguments_are_preserved_exactly(arguments: list[str]) -> None:
    [argv] = argvs(shlex.join(["grep", *arguments]))

    assert argv == ("grep", *arguments)


@given(words)
def test_any_line_is_a_command_or_refused_with_a_reason(line: str) -> None:
    program, reason = "", ""
    try:
        program = parse([line], ALLOWED)[0].program
    except (InvalidArgument, UnknownProgram) as problem:
        reason = str(problem)

    assert program in ALLOWED or reason


@pytest.mark.parametrize(
    "line",
    [
        "grep 'a|b'",
        'grep "a > b; c & d"',
        r"grep a\|b",
        "awk '{print $1; print `x`}'",
        "awk '{\n  print $1\n}'",
        "sed s/#.*//",
        r'grep "\$(x) \`y\`"',
        "sort -k2,2 # not a comment",
    ],
)
def test_shell_metacharacters_are_plain_text_in_quotes(line: str) -> None:
    assert argvs(line) == [tuple(shlex.split(line))]


# --- refusals


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("grep x | sort", "item of its own"),
        ("grep x|sort", "item of its own"),
        ("grep x\nsort", "item of its own"),
        ("grep x > out.txt", "fd_to_file"),
        ("grep x 2>&1", "fd_to_file"),
        ("grep x >> out.txt", "fd_to_file"),
        ("sort < in.txt", "in_fd"),
        ("sort <<EOF", "in_fd"),
        ("grep x; sort", "one pipeline after the other"),
        ("grep x && sort", "one pipeline after the other"),
        ("grep x || sort", "one pipeline after the other"),
        ("grep x &", "one pipeline after the other"),
        ("grep `date`", "nothing is substituted"),
        ("grep $(date)", "nothing is substituted"),
        ('grep "$(date)"', "nothing is substituted"),
        ('grep "a `date`"', "nothing is substituted"),
    ],
)
def test_shell_syntax_is_refused_with_the_alternative(line: str, advice: str) -> None:
    with pytest.raises(InvalidArgument, match=r"stage 2.*there is no shell") as refusal:
        parse(["sort", line], ALLOWED)

    assert advice in str(refusal.value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("'' x", "is empty"),
        ("grep 'x", "no closing quotation"),
        ("grep x\\", "no escaped character"),
        ("grep \0", "NUL"),
        ("grep \ud800", "surrogate"),
        ("grep " + "x" * MAX_COMMAND_BYTES, "longer than"),
        ("grep " + "é" * (MAX_COMMAND_BYTES // 2), "longer than"),
    ],
)
def test_an_invalid_command_line_is_refused_with_its_number(line: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=f"stage 3: .*{problem}"):
        parse(["sort", "uniq", line], ALLOWED)


def test_a_pipeline_has_one_stage_at_least_and_a_bounded_number() -> None:
    assert len(parse(["sort"] * MAX_STAGES, ALLOWED)) == MAX_STAGES
    with pytest.raises(InvalidArgument, match="is empty"):
        parse([], ALLOWED)
    with pytest.raises(InvalidArgument, match="at most 32"):
        parse(["sort"] * (MAX_STAGES + 1), ALLOWED)
    with pytest.raises(InvalidArgument, match="a list"):
        parse("sort", ALLOWED)


def test_a_program_that_is_not_allowed_is_named_with_those_that_are() -> None:
    with pytest.raises(UnknownProgram, match="'rm'; there are: grep, sort"):
        parse(["sort", "rm -rf /"], ["grep", "sort"])


@pytest.mark.parametrize("program", ["/usr/bin/sort", "./sort", "../sort", "bin/sort"])
def test_a_path_is_refused_as_a_program_even_if_it_is_listed(program: str) -> None:
    with pytest.raises(UnknownProgram):
        parse([program], ["sort", program])


# --- exit codes


@pytest.mark.parametrize(
    ("ended", "code", "signal"),
    [
        ((0,), 0, None),
        ((141, 0), 0, None),  # yes | head -n 1
        ((1, 0), 1, None),  # false | true
        ((3, 141, 0), 3, None),
        ((141, 1), 1, None),  # the reader has an exit code of its own for its failure
        ((137, 0), 137, 9),
        ((137, 1), 1, 9),
        ((0, 141), 141, 13),
        ((255, 0), 255, None),
    ],
)
def test_the_codes_of_stages_give_one_code_and_the_signal_that_cut_work_short(
    ended: tuple[int, ...], code: int, signal: int | None
) -> None:
    assert pipeline_exit_code(ended) == code
    assert fatal_signal(ended) == signal


@pytest.mark.parametrize(
    ("ended", "code", "signal"),
    [((141, 141), 0, None), ((3, 141), 3, None), ((137, 141), 137, 9), ((0, 137), 137, 9), ((0, 1), 1, None)],
)
def test_the_last_stage_does_not_fail_when_all_readers_closed_its_output(
    ended: tuple[int, ...], code: int, signal: int | None
) -> None:
    assert pipeline_exit_code(ended, is_unread=True) == code
    assert fatal_signal(ended, is_unread=True) == signal


@given(codes)
def test_a_pipeline_succeeds_only_if_no_stage_failed_except_by_a_closed_reader(
    ended: list[int],
) -> None:
    failed = [code for code in ended[:-1] if code not in (0, 141)] + [code for code in ended[-1:] if code]

    assert pipeline_exit_code(ended) == (failed[-1] if failed else 0)


# --- bytes as text


@given(st.binary(max_size=60) | st.text("aé漢").map(str.encode), st.integers(1, 7))
def test_text_does_not_depend_on_how_its_bytes_were_cut(data: bytes, size: int) -> None:
    stream = Utf8Text()

    pieces = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]

    assert "".join(pieces) + stream.end() == data.decode("utf-8", "backslashreplace")
    assert stream.replaced == len(data) - len(data.decode("utf-8", "ignore").encode())


# --- text or bytes

HEAD = b"x" * (HEAD_BYTES - 3)

KINDS: list[tuple[bytes, str]] = [
    (b"", "text"),
    (b"caf\xc3\xa9", "text"),
    (b"caf\xc3", "bytes"),
    (b"\x1f\x8b", "bytes"),
    (b"PK\x00\x00" * 9 + b"\xff" + b"z" * HEAD_BYTES, "bytes"),
    (HEAD + b"..\xff", "bytes"),
    (HEAD + b"...\xff", "text"),
    (HEAD + "漢".encode() + b"\xff", "text"),
    (HEAD + b".." + "漢".encode() + b"\xff" * 9, "text"),
]


@pytest.mark.parametrize(("data", "kind"), KINDS)
@pytest.mark.parametrize("size", [1, 60_000, 65_536, 200_000])
def test_the_first_64_kb_decide_between_text_and_bytes(data: bytes, kind: str, size: int) -> None:
    stream = TextOrBytes()

    pieces = [stream.feed(data[at : at + size]) for at in range(0, len(data), size)]
    whole = [piece for piece in (*pieces, stream.end()) if piece]

    assert stream.kind == kind
    if kind == "bytes":
        assert b"".join(whole) == data  # type: ignore[arg-type]
        assert stream.replaced == 0
    else:
        assert "".join(whole) == data.decode("utf-8", "backslashreplace")  # type: ignore[arg-type]
        assert stream.replaced == data.count(b"\xff")


def test_a_stream_that_pauses_is_text_if_it_is_utf8_so_far() -> None:
    stream, unclear = TextOrBytes(), TextOrBytes()

    given = [stream.settle(), stream.feed(b"one\n\xc3"), stream.settle(), stream.settle()]
    assert given == ["", "", "one\n", ""]
    assert (stream.feed(b"\xa9\xff"), stream.end(), stream.replaced) == ("é\\xff", "", 1)

    assert (unclear.feed(b"\xc3"), unclear.settle(), unclear.feed(b"\xff")) == ("", "", b"\xc3\xff")
