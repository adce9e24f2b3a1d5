"""Clients in green threads, whose sockets are replaced: reads are correct and time out."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import Child
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[3]


@pytest.mark.thorough("a new interpreter")
@pytest.mark.parametrize("kind", ["gevent", "eventlet"])
def test_green_threads_read_their_own_texts_and_time_out_on_a_silent_server(
    redis_url: str, tmp_path: Path, kind: str
) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        module = [sys.executable, "-m", "tests.on_redis.green_threads"]
        command = [*module, kind, redis_url, f"unix://{tmp_path}/silent"]
        with Child(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            output, problems = child.communicate(timeout=PATIENCE_S)

    assert child.returncode == 0, problems
    read, given_up = output.splitlines()
    assert read == "[True, True]"
    assert given_up.count("no reply in time") == 2
