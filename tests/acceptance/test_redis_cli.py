"""redis-cli and redis-server where PATH has neither: fdstore sends the commands, and finds a server."""

from __future__ import annotations

import json
import os
import pty

import pytest

from tests.acceptance.conftest import read_terminal
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
    assert json.loads(bare("redis-cli", "--json", "HGETALL", TABLE).out) == {"fd:1": "triage/1"}


def test_an_error_of_the_server_is_shown_and_the_command_fails(bare):
    ended = bare("redis-cli", "--no-raw", "HGET", "looked:trees", "x")

    assert ended.code == 1
    assert ended.out.startswith("(error) WRONGTYPE")


def test_an_open_quote_is_an_error(bare):
    ended = bare("redis-cli", stdin=b"HGET 'x\n")

    assert ended.code == 1
    assert "invalid_argument: the command: no closing quotation; close the quote" in ended.err


def test_without_a_command_there_is_a_prompt(bare):
    terminal, theirs = pty.openpty()

    with bare.start("redis-cli", stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        os.write(terminal, f"HGET '{TABLE}' fd:1\nHGET 'x\nHLEN '{TABLE}'\nquit\n".encode())
        shown = b"".join(iter(lambda: read_terminal(terminal), b"")).decode()
        _, err = process.communicate(timeout=PATIENCE_S)
    os.close(terminal)

    assert process.returncode == 0
    assert '"triage/1"\r\n' in shown
    assert "(integer) 1\r\n" in shown
    assert "close the quote" in err.decode()


def test_an_option_that_needs_redis_cli_says_so(bare):
    ended = bare("redis-cli", "--bigkeys")

    assert ended.code == 2
    assert "--bigkeys needs redis-cli itself, which is not on PATH" in ended.err


def test_the_server_that_fdstore_finds_can_be_run_by_hand(bare):
    ended = bare("redis-server", "--version")

    assert ended.code == 0
    assert " v=" in ended.out
