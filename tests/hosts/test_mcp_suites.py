"""`fdstore mcp` in official suites: conformance at two revisions, and the Inspector on both transports."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.hosts.conftest import run_host
from tests.hosts.mcp_servers import http_server, stdio_command

LINES = "".join(f"line {number}\n" for number in range(1, 2001))

# The other scenarios need fixtures of a test server (`test_simple_text`) or the extension for tasks.
PASSED = {
    "2025-11-25": {
        *("server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list"),
        *("prompts-list", "tools-call-simple-text", "tools-call-error", "dns-rebinding-protection"),
        *("server-sse-multiple-streams", "completion-complete"),
    },
    "2026-07-28": {
        *("tools-list", "resources-list", "prompts-list", "tools-call-simple-text", "tools-call-error"),
        *("sep-2164-resource-not-found", "dns-rebinding-protection", "caching", "http-header-validation"),
        *("server-sse-multiple-streams", "completion-complete"),
        *("input-required-result-unsupported-methods", "input-required-result-missing-input-response"),
        *("input-required-result-ignore-extra-params", "input-required-result-validate-input"),
    },
}

STATELESS_CHECKS = "server-stateless: 26 passed, 2 failed"
"""Both failing checks call a fixture, `test_missing_capability`."""


@pytest.fixture
def redis_url() -> Iterator[str]:
    with PrivateServer() as server:
        with fdstore.connect(server.url) as store:
            store.process("triage").create(LINES, source="build.log")
        yield server.url


@pytest.mark.parametrize("revision", PASSED)
def test_the_scenarios_of_the_conformance_suite_that_apply_pass(
    redis_url, revision, node, node_packages, empty_home
):
    suite = node_packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    with http_server(redis_url) as url:
        done = subprocess.run(
            [node, suite, "server", "--url", url, "--requirements", revision],
            env=empty_home,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    passed = set(re.findall(r"✓ ([\w-]+): [1-9]\d* passed, 0 failed", done.stdout))
    assert PASSED[revision] <= passed, done.stdout[-4000:]
    assert revision != "2026-07-28" or STATELESS_CHECKS in done.stdout


def test_the_inspector_reads_a_descriptor_on_both_transports(redis_url, node_packages, empty_home):
    def inspect(*target: str, method: str, options: list[str]) -> Any:
        command = [node_packages / ".bin" / "mcp-inspector", "--cli", *target, "--method", method, *options]
        return json.loads(run_host(*command, env=empty_home))

    read = ["--tool-name", "read_fd", "--tool-arg", "fd=fd:1#L1000-1001"]
    with http_server(redis_url) as url:
        tools = inspect(url, method="tools/list", options=[])["tools"]
        over_http = inspect(url, method="tools/call", options=read)
        part = inspect(url, method="resources/read", options=["--uri", "fdstore://triage/fd:1?lines=7-8"])
    # the Inspector takes options of the command for its own
    over_stdio = inspect(
        "env",
        f"FDSTORE_URL={redis_url}",
        stdio_command(redis_url)[0],
        "mcp",
        method="tools/call",
        options=["--tool-name", "put_fd", "--tool-arg", "text=hello"],
    )

    assert {"read_fd", "search_fd", "put_fd"} <= {tool["name"] for tool in tools}
    assert "\nline 1000\nline 1001\n" in over_http["content"][0]["text"]
    assert part["contents"][0]["text"] == "line 7\nline 8\n"
    assert '<fd_write fd="fd:1" chars="5"' in over_stdio["content"][0]["text"]
