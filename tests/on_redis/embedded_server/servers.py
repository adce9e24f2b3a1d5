"""The versions of redis-server here, and how to ask, crash or imitate a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import redis

from fdstore.local.redis_conf import binary_version, installed_binaries
from fdstore.local.redis_server import EmbeddedServer, PrivateServer

VERSIONS = {binary_version(binary): binary for binary in reversed(list(installed_binaries()))}
BINARIES = [VERSIONS[version] for version in sorted(VERSIONS, reverse=True)]


def ask(server: EmbeddedServer | PrivateServer, *command: str | int) -> Any:
    url = server.url if isinstance(server, PrivateServer) else server.status().url
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return client.execute_command(*command)


def setting(server: PrivateServer | EmbeddedServer, name: str) -> str:
    """Return what CONFIG GET says; redis-py 8 returns a dict, earlier versions the reply as it is."""
    answer = ask(server, "CONFIG", "GET", name)
    return answer[name] if isinstance(answer, dict) else answer[1]


def crash(server: EmbeddedServer) -> None:
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, 9)


def fake_redis_server(text: str, folder: Path, name: str = "redis-server") -> Path:
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{text}'\n")
    program.chmod(0o755)
    return program
