"""The official conformance suite of MCP scores the same through the gateway as without it, with `--code also`
too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.local.redis_server import PrivateServer
from tests.children import Child

FIXTURES = Path(__file__).with_name("fixture_server.py")
SUITE_S = 100
MINIMUM = {"2026-07-28": 100, "2025-11-25": 50}
"""Checks that the fixtures pass: a server that answers nothing would score the same, too."""


@pytest.fixture(scope="module")
def direct() -> Iterator[str]:
    """The URL of the server."""
    with Child([sys.executable, FIXTURES], stdout=subprocess.PIPE, text=True, deadline_s=None) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        server.kill()


@pytest.fixture(scope="module", params=[(), ("--code", "also")], ids=["plain", "code"])
def through_gateway(direct: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a gateway before it."""
    options = ["--process", "suite", *request.param]
    command = [sys.executable, "-m", "fdstore", "gateway", *options, "--http", direct]
    with PrivateServer() as store:
        environment = {**os.environ, "FDSTORE_URL": store.url}
        gateway = Child(
            [*command, "--listen", "127.0.0.1:0"],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            deadline_s=None,
        )
        with gateway:
            assert gateway.stderr is not None
            yield gateway.stderr.readline().rpartition(" ")[2].strip()
            assert gateway.end() == 143


@pytest.fixture
def run_suite(node: Path, node_packages: Path, tmp_path: Path, empty_home: dict[str, str]):
    """Return a function that runs the suite, and returns for each scenario what passed and failed."""
    suite = node_packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def run(url: str, revision: str) -> dict[str, tuple[int, int]]:
        done = subprocess.run(
            [node, suite, "server", "--url", url, "--requirements", revision],
            env=empty_home,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SUITE_S,
        )
        found = re.findall(r"(?m)^[✓✗] (\S+): (\d+) passed, (\d+) failed$", done.stdout)
        return {name: (int(passed), int(failed)) for name, passed, failed in found}

    return run


@pytest.mark.parametrize("revision", MINIMUM)
def test_each_scenario_scores_the_same_through_the_gateway(run_suite, direct, through_gateway, revision):
    scores = run_suite(direct, revision)

    assert run_suite(through_gateway, revision) == scores
    assert sum(passed for passed, _ in scores.values()) >= MINIMUM[revision]
