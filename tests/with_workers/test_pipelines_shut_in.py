"""The reach of a pipeline's commands on a real worker that has secrets.

On a machine without a sandbox the tests only check that the worker reports this.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.elements import Element
from tests.with_workers.pipe_bench import Bench

PROGRAMS = ["bash", "cat", "env", "find", "id", "ls", "xargs"]


@pytest.fixture
def shell_bench(bench: Bench) -> Bench:
    """A bench whose agent may run a shell, so that only the sandbox restricts it."""
    if "WITHOUT" in "".join(bench.redis.hvals("fdstore:workers:commands")):
        pytest.skip("the worker says that it runs commands without a sandbox")
    bench.begin(PROGRAMS)
    return bench


def bash(bench: Bench, script: str) -> tuple[Element, str, str]:
    """Run a script and return its end, its output and its stderr."""
    assert "'" not in script
    ended = bench.run(f"bash -c '{script}'")
    return ended, bench.text(ended["fd"]), bench.text(ended["stderr_fd"])


def test_files_of_the_host_are_not_visible(shell_bench: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    redis_socket = urlsplit(shell_bench.url).path
    assert Path(redis_socket).is_socket()
    project = Path(__file__).parents[2]
    hidden = [secret, redis_socket, project, Path.home(), "/root", "/home", "/var", "/run", "/etc/shadow"]

    for path in ("/etc/passwd", *hidden):
        ended = shell_bench.run(f"ls -d {path}")

        assert ended["exit_code"] == "2", path
        assert "No such file" in shell_bench.text(ended["stderr_fd"])
    assert bash(shell_bench, "cat /proc/1/root/etc/passwd || ls /proc/1/cwd/")[1] == ""


def test_secrets_of_the_worker_are_not_visible(shell_bench: Bench) -> None:
    assert "ANTHROPIC_API_KEY" in shell_bench.model.environ

    _, said, _ = bash(shell_bench, "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline")

    assert "HOME=/work" in said
    assert "ANTHROPIC" not in said
    assert shell_bench.model.environ["ANTHROPIC_API_KEY"] not in said
    assert shell_bench.url not in said


@pytest.mark.parametrize("through", ["env", "xargs", "find /usr/bin/env -exec", "bash -c 'exec \"$@\"' sh"])
def test_a_program_that_starts_others_can_start_only_programs_of_the_sandbox(
    shell_bench: Bench, through: str
) -> None:
    """So allowing one such program allows everything in the worker's /usr, and nothing more."""
    end = " \\;" if through.startswith("find") else ""

    allowed = shell_bench.run(f"{through} wc -c{end}")
    outside = shell_bench.run(f"{through} cat /etc/passwd{end}")

    assert shell_bench.text(allowed["fd"]) == "0\n"
    assert shell_bench.text(outside["fd"]) == ""
    assert "/etc/passwd: No such file" in shell_bench.text(outside["stderr_fd"])
