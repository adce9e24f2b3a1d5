"""The reach of a pipeline's commands on a real worker that has secrets.

On a machine without a sandbox the tests only check that the worker reports this.
"""

from __future__ import annotations

import socket
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


def test_no_network_or_socket_can_be_reached(shell_bench: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended, said, errors = bash(shell_bench, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")

    assert (ended["exit_code"], said) == ("1", "")
    assert "Connection refused" in errors or "Permission denied" in errors  # no such network, or no socket
    assert shell_bench.text(shell_bench.run("cat /proc/net/unix")["fd"]).count("\n") == 1  # its heading


def test_secrets_of_the_worker_are_not_visible(shell_bench: Bench) -> None:
    assert "ANTHROPIC_API_KEY" in shell_bench.model.environ

    _, said, _ = bash(shell_bench, "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline")

    assert "HOME=/work" in said
    assert "ANTHROPIC" not in said
    assert shell_bench.model.environ["ANTHROPIC_API_KEY"] not in said
    assert shell_bench.url not in said


def test_nothing_outside_the_sandbox_can_be_written(shell_bench: Bench) -> None:
    places = "/ /usr /usr/bin /usr/local /usr/share /etc /dev /dev/shm /proc/sys/kernel /root /home /var"

    _, said, _ = bash(shell_bench, f"for d in {places}; do echo x >$d/file && echo wrote $d; done")

    assert said == ""


def test_a_disk_cannot_be_filled(shell_bench: Bench) -> None:
    fill = "head -c 100M /dev/zero >/tmp/$i || exit 9"

    ended, _, errors = bash(shell_bench, f"for i in 1 2 3; do {fill}; done")

    assert ended["exit_code"] == "9"
    assert "No space left" in errors
    assert (
        shell_bench.text(shell_bench.run("ls -A /tmp /work")["fd"]) == "/tmp:\n\n/work:\n"
    )  # each command starts with empty directories


@pytest.mark.thorough("the same without a worker is tested")
def test_a_fork_bomb_is_contained_in_its_stage_and_ends_with_it(shell_bench: Bench) -> None:
    made = shell_bench.pipe_with({"wall_seconds": 1}, ["bash", "-c", "b() { b | b & b; }; b"])

    ended = shell_bench.wait(made.process)

    assert ended["reason"] == "wall" or ended["exit_code"] != "0"
    assert "Resource temporarily unavailable" in shell_bench.text(made.stderr_fd)
    shell_bench.assert_nothing_runs(8)


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


def test_an_allowed_name_matches_neither_a_path_nor_a_file_of_the_working_directory(
    shell_bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "cat").symlink_to("/usr/bin/id")

    for command in (f"{tmp_path}/cat", "./cat", "/work/cat", "id/../cat", "/proc/self/exe"):
        refused = shell_bench.tools.call("pipe", {"commands": [command]})

        assert refused.is_error
        assert 'type="unknown_program"' in refused.content
