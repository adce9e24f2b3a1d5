"""Pipelines of real programs: their output, and that nothing hangs or remains."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fdstore.errors import InvalidArgument
from fdstore.pipeline_limits import PipelineLimits
from fdstore_workers.pipeline.ended import Ended
from fdstore_workers.pipeline.pipes import BranchClosed
from fdstore_workers.pipeline.poll_loop import Pipeline
from fdstore_workers.pipeline.process_tree import MARK, ProcessSnapshot
from tests.waiting import wait_until

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
BLOCK = b"x" * 65536


class Run:
    """A run of a pipeline that collects `output`, and `errors` and `tees` by stage."""

    def __init__(
        self,
        *stages: str | list[str],
        tee: tuple[int, ...] = (),
        receivers: dict[int, Callable[[bytes], None]] | None = None,
        **options: Any,
    ) -> None:
        self.output = bytearray()
        self.errors = {number: bytearray() for number in range(1, len(stages) + 1)}
        self.tees = {number: bytearray() for number in tee}
        self.pipeline = Pipeline(
            [stage.split() if isinstance(stage, str) else stage for stage in stages],
            **{
                "output": self.output.extend,
                "error": lambda number, piece: self.errors[number].extend(piece),
                "tee": receivers or {number: gathered.extend for number, gathered in self.tees.items()},
                "environment": ENVIRONMENT,
                **options,
            },
        )

    def end(self) -> Ended:
        return self.pipeline.run()


def blocks(count: int) -> Iterator[bytes]:
    return (BLOCK for _ in range(count))


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def closed(_: bytes) -> None:
    raise BranchClosed


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """No process, descriptor or thread outlives a run."""
    open_before = len(os.listdir("/proc/self/fd"))
    running_before = ProcessSnapshot().below(os.getpid())
    yield
    assert ProcessSnapshot().below(os.getpid()) == running_before
    assert len(os.listdir("/proc/self/fd")) == open_before
    wait_until(lambda: not any(t.name.startswith("feeder") for t in threading.enumerate()), 10.0)


# --- codes


def test_a_writer_whose_reader_closed_ends_with_sigpipe_as_in_a_shell() -> None:
    run = Run("yes", "head -n 1")

    ended = run.end()

    assert (ended.codes, ended.code, ended.signal, ended.reason) == ((141, 0), 0, None, None)
    assert run.output == b"y\n"


def test_a_failure_before_the_last_stage_counts() -> None:
    ended = Run("false", "true").end()

    assert (ended.codes, ended.code) == ((1, 0), 1)


def test_the_exit_codes_show_a_killed_stage() -> None:
    ended = Run(shell("echo out; kill -9 $$"), "cat").end()

    assert (ended.codes, ended.code, ended.signal) == ((137, 0), 137, signal.SIGKILL)


def test_a_missing_program_gives_exit_code_127_and_does_not_affect_other_stages(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    run = Run(str(tmp_path / "data"), "no-such-program", "wc -c")

    ended = run.end()

    assert (ended.codes, run.output.strip()) == ((126, 127, 0), b"0")
    assert b"no-such-program" in run.errors[2]


def test_a_directory_that_does_not_exist_starts_nothing() -> None:
    with pytest.raises(FileNotFoundError):
        Run("cat", "cat", cwd="/no/such/directory").end()


def test_running_out_of_file_descriptors_ends_the_started_stages() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 40, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            Run(*["sleep 1002"] * 32).end()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("stages", [[], [[]]])
def test_a_pipeline_without_a_program_is_refused(stages: list[list[str]]) -> None:
    with pytest.raises(InvalidArgument):
        Run(*stages)


def test_a_tee_of_a_missing_stage_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="no stage 2"):
        Run("cat", tee=(2,))


def test_closing_the_output_does_not_affect_a_tee() -> None:
    run = Run("seq 1 200000", "cat", "cat", tee=(1,), output=closed)

    ended = run.end()

    assert run.tees[1].count(b"\n") == 200_000
    assert (ended.codes[0], ended.codes[2]) == (0, 141)
    assert (ended.code, ended.signal, ended.reason) == (0, None, None)


def test_a_tee_of_the_last_stage_is_complete_after_the_output_is_closed() -> None:
    run = Run("seq 1 200000", tee=(1,), output=closed)

    ended = run.end()

    assert run.tees[1].count(b"\n") == 200_000
    assert (ended.codes, ended.code, ended.is_unread) == ((0,), 0, False)


def test_a_last_stage_that_sends_itself_sigpipe_has_failed() -> None:
    ended = Run("true", shell("kill -PIPE $$"), tee=(1,)).end()

    assert (ended.codes, ended.code, ended.signal) == ((0, 141), 141, signal.SIGPIPE)


# --- bytes


def test_without_a_feed_the_input_is_empty() -> None:
    run = Run("wc -c")

    run.end()

    assert run.output.strip() == b"0"


def test_a_large_stream_passes_through_in_bounded_memory() -> None:
    Run("cat", feed=blocks(16)).end()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = Run("cat", "wc -c", feed=blocks(1600))

    ended = run.end()

    assert (ended.codes, run.output.strip()) == ((0, 0), b"104857600")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_line_of_one_megabyte_passes_three_stages_unchanged() -> None:
    line = b"".join(b"%d," % number for number in range(170_000)) + b"\n"
    run = Run("cat", "grep ,", "cat", feed=iter([line]))

    run.end()

    assert len(line) > 1_000_000
    assert run.output == line


def test_output_is_read_while_input_is_still_written() -> None:
    run = Run("cat", "cat", feed=iter([BLOCK * 64]))

    run.end()

    assert run.output == BLOCK * 64


def test_a_feed_that_ends_right_after_its_last_piece_is_noticed() -> None:
    for _ in range(30):
        run = Run("cat", feed=iter([b"a", b"b", b"c"]), limits=PipelineLimits(wall_seconds=20))

        assert run.end().codes == (0,)
        assert run.output == b"abc"


def test_many_stages_that_fill_every_pipe_do_not_deadlock() -> None:
    run = Run(*["cat"] * 32, tee=(1, 16, 31), feed=blocks(32))

    ended = run.end()

    assert ended.codes == (0,) * 32
    assert run.output == run.tees[1] == run.tees[16] == run.tees[31] == BLOCK * 32


def test_a_program_that_never_reads_does_not_block_the_feed() -> None:
    given: list[int] = []

    def feed() -> Iterator[bytes]:
        for number in range(10_000):
            given.append(number)
            yield BLOCK

    ended = Run("true", feed=feed()).end()

    assert ended.codes == (0,)
    assert len(given) < 100


def test_errors_are_read_per_stage_however_much_there_is() -> None:
    run = Run(shell("yes a | head -c 300000 >&2; echo out"), shell("cat; echo b >&2"))

    run.end()

    assert (len(run.errors[1]), bytes(run.errors[2]), bytes(run.output)) == (300_000, b"b\n", b"out\n")


def test_stages_get_nothing_but_their_own_pipes_and_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    run = Run(shell("ls /proc/self/fd; env"))
    leaked, other = os.pipe()
    os.set_inheritable(leaked, True)

    run.end()

    os.close(leaked)
    os.close(other)
    lines = bytes(run.output).decode().splitlines()
    assert lines[:4] == ["0", "1", "2", "3"]  # 3 is the directory that ls reads
    names = {line.split("=")[0] for line in lines[4:]}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "LANG", MARK}


# --- branches


def test_a_tee_is_the_output_of_its_stage() -> None:
    run = Run("sort", "uniq -c", tee=(1, 2), feed=iter([b"b\na\nb\n"]))

    run.end()

    assert run.tees[1] == b"a\nb\nb\n"
    assert run.tees[2] == run.output == b"      1 a\n      2 b\n"


def test_a_tee_continues_after_the_next_stage_closed_its_input() -> None:
    run = Run("cat", "head -c 1", tee=(1,), feed=blocks(20))

    ended = run.end()

    assert ended.code == 0
    assert (run.output, len(run.tees[1])) == (b"x", 20 * len(BLOCK))


def test_closing_a_tee_does_not_affect_the_output() -> None:
    run = Run("cat", "cat", receivers={1: closed}, feed=blocks(20))

    ended = run.end()

    assert (ended.codes, ended.reason, len(run.output)) == ((0, 0), None, 20 * len(BLOCK))


def test_closing_the_output_does_not_affect_the_tee() -> None:
    run = Run("cat", "cat", tee=(1,), feed=blocks(20), output=closed)

    ended = run.end()

    assert ended.reason is None
    assert len(run.tees[1]) == 20 * len(BLOCK)


def test_closing_stderr_does_not_affect_its_stage() -> None:
    def error(number: int, piece: bytes) -> None:
        raise BranchClosed

    run = Run(shell("for i in 1 2 3; do head -c 100000 /dev/zero >&2; done; echo done"), error=error)

    assert run.end().codes == (0,)
    assert run.output == b"done\n"


def test_when_every_branch_is_closed_the_source_is_stopped() -> None:
    run = Run("yes", "cat", output=closed)

    assert run.end().reason == "closed"


def test_a_source_that_writes_nothing_more_is_stopped_too_when_every_branch_is_closed() -> None:
    run = Run(shell("echo one; exec sleep 100"), output=closed)

    assert run.end().reason == "closed"


# --- feeds


def test_a_slow_feed_does_not_delay_the_output() -> None:
    seen = threading.Event()

    def feed() -> Iterator[bytes]:
        yield b"first\n"
        while not seen.wait(0.01):
            yield b""
        yield b"second\n"

    output = bytearray()

    def receive(piece: bytes) -> None:
        output.extend(piece)
        seen.set()

    Run("cat", feed=feed(), output=receive).end()

    assert output == b"first\nsecond\n"


def test_a_pipeline_that_ends_closes_an_idle_feed() -> None:
    was_closed = threading.Event()

    def feed() -> Iterator[bytes]:
        try:
            yield b"line\n"
            while True:
                threading.Event().wait(0.01)
                yield b""
        finally:
            was_closed.set()

    run = Run("head -n 1", feed=feed())

    assert run.end().codes == (0,)
    assert was_closed.is_set()


def test_an_exception_in_the_feed_ends_the_pipeline_and_propagates() -> None:
    def feed() -> Iterator[bytes]:
        yield b"line\n"
        raise LookupError("the source is gone")

    with pytest.raises(LookupError, match="the source is gone"):
        Run("cat", "sleep 100", feed=feed()).end()


def test_an_exception_in_a_receiver_ends_the_pipeline_and_propagates() -> None:
    def receive(piece: bytes) -> None:
        raise LookupError("no room")

    with pytest.raises(LookupError, match="no room"):
        Run("yes", "cat", output=receive).end()


# --- ends


def killed_when(run: Run, ready: bytes, *graces: float) -> Ended:
    """Run the pipeline in a thread, and when it prints `ready`, kill it once for each grace."""
    result: list[Ended] = []
    thread = threading.Thread(target=lambda: result.append(run.end()))
    thread.start()
    wait_until(lambda: ready in run.output, 10.0)
    for grace_s in graces:
        run.pipeline.kill(grace_s)
    thread.join(20)
    assert not thread.is_alive()
    return result[0]


def test_kill_sends_sigterm_first_and_can_be_repeated() -> None:
    script = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    run = Run(shell(script), feed=blocks(10_000))

    ended = killed_when(run, b"ready", 10.0, 10.0)

    assert (ended.codes, ended.reason) == ((3,), "cancelled")
    assert run.output == b"ready\nasked\n"


def test_a_program_that_ignores_sigterm_is_killed_after_the_shortest_grace() -> None:
    run = Run(shell("trap '' TERM; echo ready; while :; do sleep 1; done"))

    ended = killed_when(run, b"ready", 1000.0, 0.1)

    assert (ended.codes, ended.signal, ended.reason) == ((137,), signal.SIGKILL, "cancelled")


def test_a_pipeline_that_is_killed_before_it_runs_does_not_start(tmp_path: Path) -> None:
    run = Run(["touch", str(tmp_path / "started")])
    run.pipeline.kill()

    assert run.end() == Ended(codes=(143,), reason="cancelled")
    assert not list(tmp_path.iterdir())


def test_kill_after_the_end_does_nothing() -> None:
    run = Run("true")
    ended = run.end()

    run.pipeline.kill()

    assert ended == Ended(codes=(0,))


@pytest.mark.parametrize(
    "aside", ["sleep 1000 &", "setsid sleep 1000 &", "setsid -f sh -c 'sleep 1000; true';"]
)
def test_children_of_a_stage_end_with_it(aside: str) -> None:
    run = Run(shell(f"{aside} echo main"))

    ended = run.end()

    assert ended.codes == (0,)
    assert run.output == b"main\n"
    assert not [pid for pid in pids_running("sleep", "1000") if is_alive(pid)]


def test_children_of_a_stage_in_a_new_session_are_killed_too() -> None:
    run = Run(shell("setsid sleep 1001 & trap '' TERM; echo ready; while :; do sleep 0.01; done"))

    killed_when(run, b"ready", 0.1)

    assert not [pid for pid in pids_running("sleep", "1001") if is_alive(pid)]


def pids_running(*argv: str) -> list[int]:
    """Return the pids of processes with exactly this command line."""
    wanted = b"".join(word.encode() + b"\0" for word in argv)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == wanted:
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(PipelineLimits(stream_idle_seconds=0.2), "idle"), (PipelineLimits(wall_seconds=0.2), "wall")],
)
def test_idle_time_and_total_time_are_limited(limits: PipelineLimits, reason: str) -> None:
    ended = Run("sleep 100", "cat", limits=limits).end()

    assert (ended.reason, ended.codes[0]) == (reason, 143)


def test_a_pipeline_that_moves_bytes_is_not_idle() -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done"

    assert Run(shell(script), limits=PipelineLimits(stream_idle_seconds=0.5)).end().reason is None


def test_an_output_is_cut_at_its_limit() -> None:
    run = Run("yes", limits=PipelineLimits(stream_bytes=100_001))

    assert run.end().reason == "bytes"
    assert len(run.output) == 100_001


def test_an_output_of_just_the_limit_is_fine() -> None:
    run = Run("head -c 1000 /dev/zero", limits=PipelineLimits(stream_bytes=1000))

    assert (run.end().reason, len(run.output)) == (None, 1000)


def test_a_stage_does_not_ignore_a_broken_pipe_as_python_does() -> None:
    run = Run("grep SigIgn /proc/self/status")

    run.end()

    ignored = int(run.output.split()[1], 16)
    assert not ignored & 1 << signal.SIGPIPE - 1
