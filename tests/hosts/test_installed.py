"""The hosts that the tests of this folder run are the pinned ones."""

from __future__ import annotations

from tests.hosts.conftest import run_host


def test_the_pinned_hosts_start(claude, codex, node, empty_home):
    assert run_host(claude, "--version", env=empty_home).startswith("2.1.330")
    assert run_host(codex, "--version", env=empty_home).strip() == "codex-cli 0.169.0"
    assert run_host(node, "--version", env=empty_home).startswith("v22.")
