"""The verb `fdstore ui`: what it refuses, and that it serves until it is interrupted."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from fdstore.cli import cli
from fdstore.client import Store
from tests.children import Child
from tests.process_template import run_command, start_command
from tests.waiting import PATIENCE_S, wait_until


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "needed: --token or --token-file"),
        (["--host", "192.0.2.7"], "can be reached from other machines"),
        (["--host", "0.0.0.0", "--token"], "--allow-host"),
        (["--token", "--token-file", "x"], "not both"),
        (["--token-file", "missing.txt"], "no such file"),
        (["--allow", "write"], "'write' is not one of 'kill', 'answer'"),
    ],
)
def test_options_that_would_be_unsafe_are_refused(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["ui", *arguments])

    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(("text", "mode"), [("short", 0o600), ("a-token-of-24-characters", 0o644)])
def test_a_token_that_others_could_guess_or_read_is_refused(tmp_path: Path, text: str, mode: int) -> None:
    file = tmp_path / "token.txt"
    file.write_text(text)
    file.chmod(mode)

    assert CliRunner().invoke(cli, ["ui", "--token-file", str(file)]).exit_code == 2


@pytest.mark.parametrize("words", [["ui", "--json"], ["mcp", "--http", "127.0.0.1:0"]], ids=" ".join)
def test_a_limit_that_is_no_number_is_refused_before_anything_is_announced(
    redis_url: str, words: list[str]
) -> None:
    environ = {"FDSTORE_URL": redis_url, "FDSTORE_HTTP_CONNECTIONS": "many"}

    done = run_command(*words, env={**os.environ, **environ})

    assert (done.returncode, done.stdout) == (1, "")
    assert "FDSTORE_HTTP_CONNECTIONS" in done.stderr
    assert "http://" not in done.stderr


@contextmanager
def serving(redis_url: str, *options: str, **environ: str) -> Iterator[tuple[Child, dict[str, Any]]]:
    """Run `fdstore ui`. Yields the process, and what it announced."""
    words = ["ui", "--url", redis_url, "--json", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_command(*words, **pipes, env={**os.environ, **environ}) as server:
        yield server, json.loads(server.stdout.readline())


def interrupt(server: Child) -> tuple[int, bytes]:
    """Send a Ctrl-C. Returns the exit code, and what was written to standard error."""
    server.send_signal(signal.SIGINT)
    _, err = server.communicate(timeout=PATIENCE_S)
    return server.returncode, err


def test_the_inspector_serves_until_it_is_interrupted(redis_url: str) -> None:
    with serving(redis_url) as (server, announced):
        with urlopen(announced["url"], timeout=PATIENCE_S) as page:
            text = page.read().decode()
        with urlopen(announced["url"] + "index.live", timeout=PATIENCE_S) as live:
            assert live.readline()
            assert interrupt(server)[0] == 130

    assert announced["kill"] is False
    assert "token" not in announced
    assert re.search(r"<h1>Trees</h1>", text)
    assert "read-only" in text


@pytest.mark.parametrize(("host", "name"), [("0.0.0.0", "localhost"), ("::", "[::1]")])
def test_the_printed_address_of_all_interfaces_is_one_that_is_served(
    redis_url: str, host: str, name: str
) -> None:
    with serving(redis_url, "--host", host, "--allow-host", name, "--token") as (server, announced):
        with urlopen(announced["url"], timeout=PATIENCE_S) as page:
            text = page.read().decode()
        interrupt(server)

    assert urlsplit(announced["url"]).netloc.rpartition(":")[0] == name
    assert "<h1>Log in</h1>" in text


def test_ctrl_c_under_a_followed_stream_ends_it_without_a_word(
    redis_url: str, store: Store, execute: Callable[..., Any]
) -> None:
    with store.process("triage").open_stream("build") as out:
        out.write("line 1\n")
        out.flush()
        with serving(redis_url) as (server, announced):
            url = announced["url"] + "process/triage/fd/1/follow.live"
            with urlopen(url, timeout=PATIENCE_S) as followed:
                assert any(line.startswith(b"event: part") for line in followed)
                # the next wait in Redis lasts for seconds
                wait_until(lambda: b"blocked_clients:0" not in execute("INFO", "clients"))
                assert interrupt(server) == (130, b"")


@pytest.mark.thorough("a new interpreter")
def test_a_second_ctrl_c_ends_it_without_a_traceback(redis_url: str, store: Store) -> None:
    store.process("triage").create("x" * 60_000_000)
    with serving(redis_url) as (server, announced):
        port = urlsplit(announced["url"]).port
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            # a download that nobody reads holds the end of the server up
            client.sendall(b"GET /process/triage/fd/1/download HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            server.send_signal(signal.SIGINT)
            wait_until(lambda: not accepts(port))
            assert interrupt(server) == (130, b"")


def accepts(port: int | None) -> bool:
    """Return whether a server listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:  # it closed meanwhile: the next look is refused
        return True
    return True


def test_the_page_opens_in_the_browser_of_the_machine(redis_url: str, tmp_path: Path) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    with serving(redis_url, "--open", BROWSER=f"{browser} %s") as (server, announced):
        wait_until(opened.exists)
        interrupt(server)

    assert opened.read_text() == announced["url"] + "\n"
