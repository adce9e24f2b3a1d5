"""The resources that commands in a sandbox may use: scratch, processes, threads, memory, time."""

from __future__ import annotations

import os
import platform
import pty
import resource
import subprocess
import sys

import pytest

from fdstore.model import ends
from fdstore_workers.pipeline.bubblewrap import Bubblewrap
from fdstore_workers.pipeline.launch_settings import NOT_MADE
from fdstore_workers.pipeline.sandlock_engine import Sandlock
from tests import leftovers
from tests.unit.workers.engines import TIGHT, bash, run_in, working
from tests.unit.workers.probes import DIFFERENCES
from tests.waiting import PATIENCE_S


@pytest.fixture
def sandbox(engine: str) -> Bubblewrap | Sandlock:
    return working()[engine]


def test_scratch_is_bounded_in_bytes_and_in_files(engine: str, sandbox: Bubblewrap | Sandlock) -> None:
    if "write to scratch" in DIFFERENCES.get(engine, {}):
        said = run_in(
            sandbox, *bash("for d in / /tmp /work /dev/shm $HOME; do echo x >$d/f && echo wrote; done")
        )

        assert said.output == ""
        assert DIFFERENCES[engine]["write to scratch"] in sandbox.describe()
        return
    said = run_in(sandbox, "perl", "-e", FILL)

    expected = (
        f"{TIGHT.scratch_bytes >> 20} MiB, {TIGHT.scratch_inodes - 1} directories, No space left on device\n"
    )
    assert said.output == expected * 2


FILL = """
for my $place ("/work", "/tmp") {
    my $written = 0;
    # none of them may be larger than 8 MiB
    for my $file (1 .. 4) {
        open(my $out, ">", "$place/$file") or last;
        for (1 .. 7) { syswrite($out, "x" x (1 << 20)) == 1 << 20 or last; $written++ }
    }
    unlink glob "$place/*";
    my $made = 0;
    for (1 .. 1000) { mkdir "$place/$_" or last; $made++ }
    print "$written MiB, $made directories, $!\n";
}
"""


def test_the_number_of_processes_is_bounded(engine: str, sandbox: Bubblewrap | Sandlock) -> None:
    # the calls themselves: a C library may use another one
    for call in ("fork", "syscall(57)") if platform.machine() == "x86_64" else ("fork",):
        child = "my $p = CALL; last if !defined $p || $p < 0; if (!$p) { sleep 5; exit } print 1"
        bomb = f"for (1 .. 400) {{ {child.replace('CALL', call)} }}"

        said = run_in(sandbox, "perl", "-e", f"$| = 1; {bomb}")

        assert said.ended.codes == (0,), said.errors
        assert TIGHT.processes - 4 <= len(said.output) < TIGHT.processes


def test_the_number_of_threads_is_bounded(engine: str, sandbox: Bubblewrap | Sandlock) -> None:
    here, _ = resource.getrlimit(resource.RLIMIT_NPROC)

    limit = run_in(sandbox, *bash("ulimit -u")).output.strip()

    if said := DIFFERENCES.get(engine, {}).get("start threads"):
        assert limit == ("unlimited" if here == resource.RLIM_INFINITY else str(here))
        assert said in sandbox.describe()
    else:
        assert f"{limit} {'processes' if engine == 'bubblewrap' else 'threads'}" in sandbox.describe()


def test_a_fork_bomb_ends_with_its_stage(sandbox: Bubblewrap | Sandlock) -> None:
    with leftovers.nothing_left():
        said = run_in(sandbox, *bash("b() { b | b & b; }; b"), kill_at_output=True, grace_s=0.2)

    assert said.ended.reason is ends.CANCELLED
    assert "Resource temporarily unavailable" in said.errors


def test_memory_time_files_and_cores_are_bounded(sandbox: Bubblewrap | Sandlock) -> None:
    limits = run_in(sandbox, *bash("ulimit -v; ulimit -t; ulimit -f; ulimit -n; ulimit -c; ulimit -n 1000"))
    memory = run_in(sandbox, "perl", "-e", "my $x = 'x' x (1 << 30); print 'got it'")
    time = run_in(sandbox, *bash("while :; do :; done"))

    expected = [TIGHT.memory_bytes // 1024, TIGHT.cpu_s, TIGHT.file_bytes // 1024, TIGHT.open_files, 0]
    assert [int(word) for word in limits.output.split()] == expected
    assert limits.ended.code != 0
    assert (memory.output, memory.ended.code != 0) == ("", True)
    assert time.ended.codes == (152,)  # XCPU


def test_input_cannot_be_injected_into_a_terminal(sandbox: Bubblewrap | Sandlock) -> None:
    master, slave = pty.openpty()
    ran = subprocess.run(
        sandbox.wrap(["perl", "-e", "my $c = 'x'; print ioctl(STDIN, 0x5412, $c) ? 'typed' : 'refused'"]),
        stdin=slave,
        stdout=subprocess.PIPE,
        env=sandbox.environment,
        start_new_session=True,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(slave)
    os.close(master)

    assert ran.stdout == b"refused"


def test_a_command_has_a_session_keyring_of_its_own() -> None:
    """Independent of any later system call filter."""
    ids = [
        "import ctypes; from fdstore_workers.pipeline import kernel",
        "libc = ctypes.CDLL(None); number = kernel._NR_KEYCTL",
        "before = libc.syscall(number, 0, -3, 1); kernel.join_new_session_keyring()",
        "after = libc.syscall(number, 0, -3, 0); print(before > 0, after > 0, before != after)",
    ]

    ran = subprocess.run(
        [sys.executable, "-c", "; ".join(ids)], stdout=subprocess.PIPE, text=True, timeout=30
    )

    assert ran.stdout == "True True True\n"


def test_a_sandbox_that_cannot_be_made_has_a_code_of_its_own(sandbox: Bubblewrap | Sandlock) -> None:
    unfit = {"scratch_bytes": "none", "readable": "/no/such/place"}

    def spoilt(word: str) -> str:
        name = word.split("=")[0]
        return f"{name}={unfit[name]}" if name in unfit else word

    command = [spoilt(word) for word in sandbox.wrap(["true"])]

    ran = subprocess.run(
        command, env=sandbox.environment, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False
    )

    assert (ran.returncode, "fdstore: no sandbox: " in ran.stderr) == (NOT_MADE, True)
