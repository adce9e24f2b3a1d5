"""What the commands of a pipeline can see and do on a real worker that has secrets.

Where no sandbox can be made, the worker says so, and that is all there is to assert there.
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
def inside(bench: Bench) -> Bench:
    """A bench whose agent may run even a shell: what holds then is the sandbox alone."""
    if "WITHOUT" in "".join(bench.redis.hvals("fdstore:workers:commands")):
        pytest.skip("the worker says that it runs commands without a sandbox")
    bench.begin(PROGRAMS)
    return bench


def bash(bench: Bench, script: str) -> tuple[Element, str, str]:
    """How a script ended, what it wrote, and what it said of errors."""
    assert "'" not in script
    ended = bench.run(f"bash -c '{script}'")
    return ended, bench.text(ended["fd"]), bench.text(ended["stderr_fd"])


def test_no_file_of_the_host_is_there(inside: Bench, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    redis_socket = urlsplit(inside.url).path
    assert Path(redis_socket).is_socket()
    project = Path(__file__).parents[2]
    hidden = [secret, redis_socket, project, Path.home(), "/root", "/home", "/var", "/run", "/etc/shadow"]

    for path in ("/etc/passwd", *hidden):
        ended = inside.run(f"ls -d {path}")

        assert ended["exit_code"] == "2", path
        assert "No such file" in inside.text(ended["stderr_fd"])
    assert bash(inside, "cat /proc/1/root/etc/passwd || ls /proc/1/cwd/")[1] == ""


def test_nothing_can_be_reached(inside: Bench) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended, said, errors = bash(inside, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")

    assert (ended["exit_code"], said) == ("1", "")
    assert "Connection refused" in errors or "Permission denied" in errors  # no such network, or no socket
    assert inside.text(inside.run("cat /proc/net/unix")["fd"]).count("\n") == 1  # its heading


def test_no_secret_of_the_worker_is_seen(inside: Bench) -> None:
    assert "ANTHROPIC_API_KEY" in inside.model.environ

    _, said, _ = bash(inside, "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline")

    assert "HOME=/work" in said
    assert "ANTHROPIC" not in said
    assert inside.model.environ["ANTHROPIC_API_KEY"] not in said
    assert inside.url not in said


def test_nothing_outside_can_be_written(inside: Bench) -> None:
    places = "/ /usr /usr/bin /usr/local /usr/share /etc /dev /dev/shm /proc/sys/kernel /root /home /var"

    _, said, _ = bash(inside, f"for d in {places}; do echo x >$d/file && echo wrote $d; done")

    assert said == ""


def test_a_disk_cannot_be_filled(inside: Bench) -> None:
    fill = "head -c 100M /dev/zero >/tmp/$i || exit 9"

    ended, _, errors = bash(inside, f"for i in 1 2 3; do {fill}; done")

    assert ended["exit_code"] == "9"
    assert "No space left" in errors
    assert inside.text(inside.run("ls -A /tmp /work")["fd"]) == "/tmp:\n\n/work:\n"  # each begins anew


def test_a_fork_bomb_stays_within_its_stage_and_ends_with_it(inside: Bench) -> None:
    made = inside.pipe_with({"wall_seconds": 1}, ["bash", "-c", "b() { b | b & b; }; b"])

    ended = inside.wait(made.process)

    assert ended["reason"] == "wall" or ended["exit_code"] != "0"
    assert "Resource temporarily unavailable" in inside.text(made.stderr_fd)
    inside.nothing_runs(8)


@pytest.mark.parametrize("through", ["env", "xargs", "find /usr/bin/env -exec", "bash -c 'exec \"$@\"' sh"])
def test_a_program_that_starts_others_starts_what_there_is_in_the_sandbox(
    inside: Bench, through: str
) -> None:
    """So to put one on the list puts all of the worker's /usr on it, and nothing more."""
    end = " \\;" if through.startswith("find") else ""

    allowed = inside.run(f"{through} wc -c{end}")
    outside = inside.run(f"{through} cat /etc/passwd{end}")

    assert inside.text(allowed["fd"]) == "0\n"
    assert inside.text(outside["fd"]) == ""
    assert "/etc/passwd: No such file" in inside.text(outside["stderr_fd"])


def test_what_is_on_the_list_is_no_path_and_no_file_of_the_input(inside: Bench, tmp_path: Path) -> None:
    (tmp_path / "cat").symlink_to("/usr/bin/id")

    for command in (f"{tmp_path}/cat", "./cat", "/work/cat", "id/../cat", "/proc/self/exe"):
        refused = inside.tools.call("pipe", {"commands": [command]})

        assert refused.is_error
        assert 'type="unknown_program"' in refused.content
