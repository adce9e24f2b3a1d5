"""The Lua scripts keep their rules: documented arguments, keys of one tree, checks before writes."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from fdstore.errors import NotFound
from fdstore.store.outcomes import outcome
from fdstore.wire import scripts
from fdstore.wire.scripts import NUMBER, as_eval, is_read, name_of, script, signature
from tests.script_calls import script_call

FOLDER = resources.files("fdstore.store") / "lua"
SOURCES = {
    file.name.removesuffix(".lua"): file.read_text("utf-8")
    for file in FOLDER.iterdir()
    if file.name.endswith(".lua")
}
SCRIPTS = {name: source for name, source in SOURCES.items() if name != "common"}
SHARED = SOURCES["common"]

WRITES = {
    *["APPEND", "COPY", "DEL", "EXPIRE", "HDEL", "HINCRBY", "HSET", "HSETNX", "LPUSH", "LTRIM", "PERSIST"],
    *["PEXPIRE", "RENAME", "RPUSH", "SADD", "SET", "SPOP", "SREM", "UNLINK", "XADD", "XTRIM", "ZADD", "ZREM"],
}
KEYS_OF_CLOSE = ("{t}:tree", "{t}:process", "{t}:fd_table", "{t}:answers")
WRITERS = {"add_words", "answer", "clear", "hold", "release", "release_all", "forget_writer", "next_number"}


def header_of(source: str) -> str:
    return re.match(r"(?:--[^\n]*\n)*", source)[0]  # every source matches, if with nothing


def code_of(source: str) -> str:
    return re.sub(r"--[^\n]*", "", source)


def calls_of(source: str) -> list[tuple[str, str]]:
    """Commands and the expression of their first key."""
    return re.findall(
        r"redis\.p?call\(\s*'([A-Z]+)'\s*,?\s*(?:'IDLETIME', )?([^,)]*(?:\([^)]*\)[^,)]*)?)", code_of(source)
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_header_of_a_script_states_purpose_arguments_and_result(name: str) -> None:
    header = header_of(SCRIPTS[name])

    assert re.match(r"-- [A-Z](?:.|\n)*?\.\n-- KEYS", header)
    assert "-- ->" in header
    assert "ARGV" in header or "ARGV" not in code_of(SCRIPTS[name])


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_key_and_argument_has_a_name_in_the_header_and_is_used_by_it(name: str) -> None:
    code, (keys, arguments, rest) = code_of(SCRIPTS[name]), signature(SCRIPTS[name])
    names = [each.removesuffix(NUMBER) for each in (*keys, *arguments)]
    given = {*names, f"{rest}_from"} if rest else {*names}

    assert not re.search(r"(?:KEYS|ARGV)\[\d", code)
    assert len(given) == len(names) + bool(rest)
    assert [each for each in given if not re.search(rf"\b{each}\b", code)] == []
    # else a variable, or a function that the loader inserts, would hide it
    names_of = re.compile(r"local (?:function )?([\w, ]+?)(?: =|\(|\n)")
    inserted = "\n".join(re.findall(r"^local [^\n]*\n", SHARED, re.MULTILINE))
    assert not given & {each for some in names_of.findall(code + inserted) for each in some.split(", ")}


def test_a_call_names_every_key_and_argument_once() -> None:
    given = {"tree": "t", "process": "p", "process_id": "p", "attempt": "1", "most_s": "", "questions": ""}

    assert script("wait")(**given, children=["p.1", "p.2"])[2:] == (2, *given.values(), "p.1", "p.2")
    assert script("wait")(**given)[2:] == (2, *given.values())
    for wrong in ({**given, "other": 1}, {"tree": "t"}):
        with pytest.raises(
            TypeError, match="wait takes tree, process, process_id, attempt, most_s, questions, not"
        ):
            script("wait")(**wrong)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_key_is_passed_or_derived_from_a_passed_one(name: str) -> None:
    code = code_of(SCRIPTS[name])
    made = {*signature(SCRIPTS[name])[0], "process_record(", "content_record("}
    grown = True
    while grown:
        before = len(made)
        for variables, values in re.findall(r"local ([\w, ]+?) = ([^\n]+)", code):
            for variable, value in zip(
                variables.split(", "), re.split(r", (?![^(]*\))", values), strict=False
            ):
                if any(value.strip().startswith(start) for start in made):
                    made.add(variable)
        grown = len(made) > before

    for command, key in calls_of(SCRIPTS[name]):
        if command in ("TIME", "INFO", "XREAD"):
            continue
        # parameters of local functions are called with keys; they are named for them
        assert any(key.strip().startswith(start) for start in made | {"key", "record", "index"}), (
            command,
            key,
        )


def test_shared_functions_derive_keys_only_from_the_tree() -> None:
    for command, key in calls_of(SHARED):
        if command not in ("TIME", "INFO"):
            assert re.match(
                r"key|record|asks|from|process_record\(|content_record\(|process\b|fds|tree|process_key",
                key,
            )


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_scans_for_keys(name: str) -> None:
    assert not {command for command, _ in calls_of(SCRIPTS[name])} & {"KEYS", "SCAN", "RANDOMKEY", "FLUSHALL"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_returns_an_error_after_its_first_write(name: str) -> None:
    refusals = r"return (\{ '(gone|fenced|quota_exceeded|spawn_limit|not_found|lost|stream_closed)'|refused)"
    written = False
    late = []

    # a branch may write before its own return; only the main path counts
    for line in code_of(SCRIPTS[name]).splitlines():
        if written and re.search(refusals, line):
            late.append(line)
        if not line.startswith(" "):
            written = written or bool(re.search(r"'(" + "|".join(WRITES) + r")'", line))
            written = written or bool(re.match(r"(return )?(" + "|".join(WRITERS) + r")\(", line))

    assert late == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_only_commands_of_redis_6_2_are_used(name: str) -> None:
    newer = {"EXPIRETIME", "LMPOP", "ZMPOP", "SINTERCARD", "HEXPIRE", "HGETEX", "HSETEX", "FUNCTION", "FCALL"}

    assert not {command for command, _ in calls_of(SCRIPTS[name])} & newer


def test_a_script_is_sent_by_sha_and_in_full_if_the_server_lacks_it() -> None:
    command = script_call("close", fd="fd:3")

    assert command[0] == "EVALSHA"
    assert name_of(command) == "close"
    full = as_eval(command)
    assert full[0] == "EVAL"
    assert SCRIPTS["close"] in str(full[1])
    assert full[2:] == command[2:] == (4, *KEYS_OF_CLOSE, "op", "attempt", "process_id", "fd:3")


def test_writing_and_reading_scripts_are_distinguished() -> None:
    assert is_read(("HGET", "k", "f"))
    assert is_read(script_call("resolve"))
    assert not is_read(("HSET", "k", "f", "v"))
    assert not is_read(script_call("close"))
    assert not is_read(("ZADD", "k", 1, "m"))
    assert not scripts.READS & WRITES


def test_known_ids_are_in_number_order() -> None:
    with pytest.raises(NotFound) as caught:
        outcome([b"not_found", b"fd:99", b"ref:a", b"fd:10", b"fd:9"], "t")

    assert caught.value.known == ("fd:9", "fd:10", "ref:a")
