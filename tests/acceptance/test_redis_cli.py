"""redis-cli and redis-server where PATH has neither: fdstore sends the commands, and finds a server."""

from __future__ import annotations

import pytest

from tests.waiting import PATIENCE_S

TABLE = "looked:{triage}:triage:fds"
PAGES = "looked:{triage}:triage:fd:1:pages"


@pytest.fixture
def bare(command, tmp_path):
    """The command, where PATH has no program at all, with a text."""
    command.environment["FDSTORE_PREFIX"] = "looked"
    command("put", "triage", "-", stdin='one\ntwo "x" é\n'.encode())
    command.environment["PATH"] = str(tmp_path)
    yield command
    command("rm", "--tree", "triage", "--yes")
    command("redis-cli", "DEL", "looked:{triage}:earlier:numbers")  # the next tree begins with fd:1


def test_the_printed_lines_of_redis_cli_work_without_one(bare):
    page = bare("redis-cli", "--raw", "HGET", PAGES, "1")
    table = bare("redis-cli", "HGETALL", TABLE)
    scored = bare("redis-cli", "ZRANGE", "looked:{triage}:processes", "0", "-1")

    assert (page.code, page.out) == (0, 'one\ntwo "x" é\n\n')
    assert table.lines == ["fd:1", "triage/1"]
    assert scored.lines == ["triage"]


def test_replies_on_a_terminal_are_numbered_and_quoted(bare):
    table = bare.on_terminal("redis-cli", "HGETALL", TABLE)
    page = bare.on_terminal("redis-cli", "HGET", PAGES, "1")
    number = bare.on_terminal("redis-cli", "HLEN", PAGES)
    absent = bare.on_terminal("redis-cli", "HGET", PAGES, "2")
    kind = bare.on_terminal("redis-cli", "TYPE", PAGES)

    assert table.lines == ['1) "fd:1"', '2) "triage/1"']
    assert page.lines == [r'"one\ntwo \"x\" \xc3\xa9\n"']
    assert number.lines == ["(integer) 1"]
    assert absent.lines == ["(nil)"]
    assert kind.lines == ["hash"]


def test_commands_are_read_from_standard_input(bare):
    ended = bare("redis-cli", stdin=f"PING\n\nHGET '{TABLE}' fd:1\n".encode())

    assert (ended.code, ended.lines) == (0, ["PONG", "triage/1"])


def test_json_names_the_fields_of_a_hash(bare):
    assert bare("redis-cli", "--json", "HGETALL", TABLE).document == {"fd:1": "triage/1"}


def test_json_works_though_the_redis_cli_on_path_is_too_old_for_it(bare, tmp_path):
    (tmp_path / "redis-cli").write_text("#!/bin/sh\necho redis-cli 6.2.14; [ $1 = --version ]\n")
    (tmp_path / "redis-cli").chmod(0o755)

    assert bare("redis-cli", "--json", "HGETALL", TABLE).document == {"fd:1": "triage/1"}
    assert bare("redis-cli", "HGETALL", TABLE).out == "redis-cli 6.2.14\n"
    ended = bare("redis-cli", "--json", "--bigkeys")
    assert ended.code == 2
    assert (
        "--bigkeys needs redis-cli itself, and --json needs redis-cli 7: the one on PATH is older"
        in ended.err
    )


@pytest.mark.parametrize(
    ("words", "stdin", "code", "said"),
    [
        (["--no-raw", "HGET", "looked:trees", "x"], b"", 1, "(error) WRONGTYPE"),
        ([], b"HGET 'x\n", 1, "invalid_argument: the command: no closing quotation; close the quote"),
        (["--bigkeys"], b"", 2, "--bigkeys needs redis-cli itself, which is not on PATH"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_command_fails(bare, words, stdin, code, said):
    ended = bare("redis-cli", *words, stdin=stdin)

    assert ended.code == code
    assert said in ended.out + ended.err


def test_without_a_command_there_is_a_prompt(bare):
    with bare.at_terminal("redis-cli", streams=("stdin", "stdout")) as (process, terminal):
        terminal.type(f"HGET '{TABLE}' fd:1\nHGET 'x\nHLEN '{TABLE}'\nquit\n")
        shown = terminal.rest().decode()
        _, err = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0
    assert '"triage/1"\r\n' in shown
    assert "(integer) 1\r\n" in shown
    assert "close the quote" in err.decode()


def test_the_server_that_fdstore_finds_can_be_run_by_hand(bare):
    ended = bare("redis-server", "--version")

    assert ended.code == 0
    assert " v=" in ended.out
