"""Commands in a sandbox: what they see and how they end.

The tests run in each sandbox that works here (`test_sandbox_probes.py` asserts that one does).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fdstore.model import ends
from fdstore_workers.pipeline.bubblewrap import Bubblewrap
from fdstore_workers.pipeline.choose_sandbox import Sandbox, find_sandbox
from fdstore_workers.pipeline.launch_settings import NOT_MADE
from fdstore_workers.pipeline.poll_loop import PipelineResult
from fdstore_workers.pipeline.process_tree import ProcessSnapshot
from fdstore_workers.pipeline.sandlock_engine import Sandlock, find_sandlock
from tests import leftovers
from tests.children import Child
from tests.thorough import sample
from tests.unit.workers.engines import ALONE, TIGHT, CommandOutput, bash, engines, run_in, working
from tests.waiting import PATIENCE_S, wait_until

Inside = Callable[..., CommandOutput]
WITH_NAMESPACES = [engine for engine in engines() if engine != ALONE]


def open_sandbox_runner(engine: str) -> Iterator[Inside]:
    """Yield a function that runs a command in the sandbox; fail if any process or descriptor remains."""
    sandbox = working()[engine]
    with leftovers.nothing_left():
        yield lambda *argv, **options: run_in(sandbox, *argv, **options)


@pytest.fixture(params=engines())
def in_any_sandbox(request: pytest.FixtureRequest) -> Iterator[Inside]:
    """In each sandbox."""
    yield from open_sandbox_runner(request.param)


@pytest.fixture(params=WITH_NAMESPACES)
def inside(request: pytest.FixtureRequest) -> Iterator[Inside]:
    """In each sandbox with namespaces, and so with its own root directory."""
    yield from open_sandbox_runner(request.param)


# --- what it cannot do


def test_a_program_runs_and_its_exit_code_is_returned(in_any_sandbox: Inside) -> None:
    assert in_any_sandbox("echo", "hello").output == "hello\n"
    assert in_any_sandbox(*bash("exit 7")).ended == PipelineResult(codes=(7,))
    assert in_any_sandbox(*bash("kill -9 $$")).ended == PipelineResult(codes=(137,))
    assert in_any_sandbox("no-such-program").ended == PipelineResult(codes=(127,))


def test_a_program_that_failed_is_not_a_sandbox_that_failed(in_any_sandbox: Inside) -> None:
    for code in (1, NOT_MADE):
        assert in_any_sandbox(*bash(f"exit {code}")).ended == PipelineResult(codes=(code,))


def test_a_program_has_no_access_to_the_report_pipe_of_its_launcher(in_any_sandbox: Inside) -> None:
    said = in_any_sandbox(
        *bash("env; for fd in {3..63}; do (: >&$fd) 2>/dev/null && echo open $fd; done; true")
    )

    assert "PATH=" in said.output
    assert "FDSTORE_STATUS" not in said.output
    assert "open" not in said.output


def test_only_files_that_programs_need_are_visible(inside: Inside) -> None:
    top = set(inside("ls", "/").output.split())

    assert {"usr", "proc", "dev", "tmp", "work", "etc"} <= top
    assert top <= {
        "usr",
        "proc",
        "dev",
        "tmp",
        "work",
        "etc",
        "bin",
        "sbin",
        "lib",
        "lib32",
        "lib64",
        "libx32",
    }
    assert set(inside("ls", "/etc").output.split()) <= {"ld.so.cache", "alternatives"}
    assert inside("ls", "-A", "/work", "/tmp").output.split() == ["/tmp:", "/work:"]
    assert inside("ls", "-A", "/usr/src").output == ""


@pytest.mark.parametrize("engine", WITH_NAMESPACES)
def test_no_mount_is_writable_but_the_scratch_and_what_the_kernel_makes(engine: str) -> None:
    sandbox = working()[engine]
    command = sandbox.wrap(["sh", "-c", "echo begun; read end"])
    with Child(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=sandbox.environment
    ) as running:
        assert running.stdout
        assert running.stdout.readline() == "begun\n"
        program = next(each for each in ProcessSnapshot().below(running.pid) if each.inside and not each.init)
        # read from outside: in sandlock, programs see mounts that do not exist
        mounts = [line.split() for line in Path(f"/proc/{program.pid}/mounts").read_text().splitlines()]
        running.communicate("end\n", timeout=PATIENCE_S)
    writable = {place for _, place, kind, options, *_ in mounts if "rw" in options.split(",")}

    assert {place for place in writable if not place.startswith(("/dev/", "/proc"))} == {"/work", "/tmp"}


def below_usr(engine: str, moment: str) -> str:
    """Return the output of a command that writes below /usr, where the host mounts a world-writable file
    system "before" or "after" the command starts. Runs in a new mount namespace, and, unless the user is
    root, in a new user namespace, whose creator may mount."""
    place = next(path for path in sorted(Path("/usr/share").iterdir()) if path.is_dir())
    arguments = [sys.executable, "-c", MOUNTED_BELOW_USR, engine, str(place), moment]
    apart = ["--user", "--map-current-user", "--keep-caps"] if os.geteuid() else []
    return subprocess.run(
        ["unshare", *apart, "--mount", "--propagation", "shared", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


MOUNTED_BELOW_USR = """
import ctypes, subprocess, sys
from fdstore_workers.pipeline.choose_sandbox import Engine, Sandbox, find_sandbox
from fdstore_workers.pipeline.sandlock_engine import Sandlock, find_sandlock
engine, place, moment = sys.argv[1:]
libc = ctypes.CDLL(None)
libc.prctl(47, 4, 0, 0, 0)  # PR_CAP_AMBIENT, ..._CLEAR_ALL: the right to mount is for this program alone

def mount():
    # mount(8) asks for root by name
    assert libc.mount(b"none", place.encode(), b"tmpfs", 0, b"mode=1777") == 0
    open(f"{place}/there", "w").close()

sandbox = find_sandbox(engine=engine)
if moment == "before":
    mount()
script = "echo begun; read go; cd $0; test -e there && echo seen; echo x >file && echo wrote; echo done"
command = subprocess.Popen(
    sandbox.wrap(["sh", "-c", script, place]),
    env=sandbox.environment,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
)
command.stdout.readline()
if moment == "after":
    mount()
print(command.communicate("go\\n")[0], end="")
"""


@pytest.mark.parametrize("engine", WITH_NAMESPACES)
def test_a_file_system_of_its_own_below_usr_can_be_read_only(engine: str) -> None:
    assert below_usr(engine, "before") == "seen\ndone\n"


@pytest.mark.parametrize("engine", WITH_NAMESPACES)
def test_a_file_system_mounted_below_usr_during_a_command_is_not_visible(engine: str) -> None:
    assert below_usr(engine, "after") == "done\n"


def test_a_command_runs_as_nobody_without_capabilities_and_cannot_gain_any(inside: Inside) -> None:
    assert inside("id", "-u").output == "65534\n"
    status = dict(line.split(":", 1) for line in inside("cat", "/proc/self/status").output.splitlines())
    assert all(int(status[name], 16) == 0 for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"))
    assert status["NoNewPrivs"].strip() == "1"
    assert inside("unshare", "--user", "--map-root-user", "true").ended.code != 0


def test_processes_of_the_host_are_not_seen(inside: Inside) -> None:
    said = inside(*bash(f"kill -0 {os.getpid()} || echo none; ls -d /proc/[0-9]*"))

    assert said.output.startswith("none\n")
    assert len(said.output.split()) < 8


# --- what it may use


def test_a_full_scratch_is_an_error_of_the_program_alone(inside: Inside) -> None:
    said = inside(*bash("for i in 1 2 3 4 5; do head -c 7M /dev/zero >$i || exit 9; done"))

    assert said.ended.codes == (9,)
    assert "No space left" in said.errors


def test_one_file_has_a_bounded_size(inside: Inside) -> None:
    assert inside("dd", "if=/dev/zero", "of=big", "bs=1M", "count=12").ended.codes == (153,)  # XFSZ


def test_a_command_receives_sigterm_and_can_handle_it(in_any_sandbox: Inside) -> None:
    script = "trap 'echo asked; exit 3' TERM; echo begun; while :; do sleep 0.05; done"

    said = in_any_sandbox(*bash(script), kill_at_output=True)

    assert (said.ended.codes, said.output, said.ended.reason) == (
        (3,),
        "begun\nasked\n",
        ends.CANCELLED,
    )


@pytest.mark.thorough("many kills, for a moment that is seldom hit")
def test_a_command_that_ends_while_it_is_killed_has_its_code_or_that_of_sigterm(
    in_any_sandbox: Inside,
) -> None:
    """Between the end of a program and that of its sandbox nothing else is there to be signalled."""
    found = {in_any_sandbox(*bash("echo; exit 7"), kill_at_output=True).ended.codes for _ in range(12)}

    assert found <= {(7,), (143,)}


def test_background_processes_of_a_command_end_with_it(in_any_sandbox: Inside) -> None:
    marker = f"98{os.getpid()}"

    said = in_any_sandbox("bash", "-c", f"setsid sleep {marker} & echo main")

    assert (said.ended.codes, said.output) == ((0,), "main\n")
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if marker in text_of(path)]


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


WORKER = """
import sys
from fdstore_workers.pipeline.poll_loop import PipelineRun
from tests.unit.workers.engines import bash, working
sandbox = working()[sys.argv[1]]
print("ready", flush=True)
PipelineRun(
    [["sh", "-c", "echo begun; (setsid sleep 987 &); sleep 987"]],
    output=lambda piece: print(piece.decode(), flush=True),
    error=lambda number, piece: None,
    command=sandbox.wrap,
    environment=sandbox.environment,
).run()
"""


@pytest.mark.parametrize("engine", sample(working(), 1, "another sandbox"))
def test_commands_of_a_worker_that_is_killed_end_with_it(engine: str) -> None:
    with Child([sys.executable, "-c", WORKER, engine], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout
        assert [worker.stdout.readline(), worker.stdout.readline()] == ["ready\n", "begun\n"]
        below = ProcessSnapshot().below(worker.pid)

        worker.kill()

    assert len(below) >= 2
    wait_until(lambda: not any(Path(f"/proc/{process.pid}").exists() for process in below))


@pytest.mark.parametrize("engine", working())
def test_a_sandbox_describes_its_restrictions(engine: str) -> None:
    told = working()[engine].describe()

    assert engine.split(",")[0] in told
    assert "no network" in told
    assert "16 processes" in told
    assert "memory of all processes together is not limited" in told
    assert ("16 MiB in each of /work and /tmp and 300 files" in told) == (engine != ALONE)


@pytest.mark.parametrize("engine", working())
def test_a_private_directory_below_usr_is_hidden(engine: str) -> None:
    some = next(
        path for path in sorted(Path("/usr/share").iterdir()) if path.is_dir() and any(path.iterdir())
    )
    if engine == ALONE:
        hiding: Sandbox = find_sandlock(TIGHT, [some], namespaces=False)
    else:
        hiding = find_sandbox(engine=engine, private=[some], limits=TIGHT)

    assert isinstance(hiding, Bubblewrap | Sandlock)
    assert run_in(hiding, "ls", "-A", str(some)).output == ""
    assert run_in(hiding, "ls", "-A", "/usr/bin").output != ""
