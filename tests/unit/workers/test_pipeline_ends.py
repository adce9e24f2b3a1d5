"""Ends of pipelines: killed, idle, over a limit, with their feeds and children."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.model import ends
from fdstore.model.ends import Reason
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore_workers.pipeline.poll_loop import PipelineResult
from tests.unit.workers.running import Run, blocks, pids_of, shell
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.usefixtures("nothing_left")


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


def killed_when(run: Run, ready: bytes, *graces: float) -> PipelineResult:
    """Run the pipeline in a thread, and when it prints `ready`, kill it once for each grace."""
    result: list[PipelineResult] = []
    thread = threading.Thread(target=lambda: result.append(run.end()))
    thread.start()
    wait_until(lambda: ready in run.output)
    for grace_s in graces:
        run.pipeline.kill(grace_s)
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    return result[0]


def test_kill_sends_sigterm_first_and_can_be_repeated() -> None:
    script = "trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    run = Run(shell(script), feed=blocks(10_000))

    ended = killed_when(run, b"ready", 10.0, 10.0)

    assert (ended.codes, ended.reason) == ((3,), ends.CANCELLED)
    assert run.output == b"ready\nasked\n"


def test_a_program_that_ignores_sigterm_is_killed_after_the_shortest_grace() -> None:
    run = Run(shell("trap '' TERM; echo ready; while :; do sleep 1; done"))

    ended = killed_when(run, b"ready", 1000.0, 0.1)

    assert (ended.codes, ended.signal, ended.reason) == ((137,), signal.SIGKILL, ends.CANCELLED)


def test_a_pipeline_that_is_killed_before_it_runs_does_not_start(tmp_path: Path) -> None:
    run = Run(["touch", str(tmp_path / "started")])
    run.pipeline.kill()

    assert run.end() == PipelineResult(codes=(143,), reason=ends.CANCELLED)
    assert not list(tmp_path.iterdir())


def test_kill_after_the_end_does_nothing() -> None:
    run = Run("true")
    ended = run.end()

    run.pipeline.kill()

    assert ended == PipelineResult(codes=(0,))


@pytest.mark.parametrize(
    "aside", ["sleep 1000 &", "setsid sleep 1000 &", "setsid -f sh -c 'sleep 1000; true';"]
)
def test_children_of_a_stage_end_with_it(aside: str) -> None:
    run = Run(shell(f"{aside} echo main"))

    ended = run.end()

    assert ended.codes == (0,)
    assert run.output == b"main\n"
    assert not pids_of("sleep", "1000")


def test_children_of_a_stage_in_a_new_session_are_killed_too() -> None:
    run = Run(shell("setsid sleep 1001 & trap '' TERM; echo ready; while :; do sleep 0.01; done"))

    killed_when(run, b"ready", 0.1)

    assert not pids_of("sleep", "1001")


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (PipelineLimits(stream_idle_seconds=0.2), ends.IDLE),
        (PipelineLimits(wall_seconds=0.2), ends.WALL),
    ],
)
def test_idle_time_and_total_time_are_limited(limits: PipelineLimits, reason: Reason) -> None:
    ended = Run("sleep 100", "cat", limits=limits).end()

    assert (ended.reason, ended.codes[0]) == (reason, 143)


def test_a_pipeline_that_moves_bytes_is_not_idle() -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done"

    assert Run(shell(script), limits=PipelineLimits(stream_idle_seconds=0.5)).end().reason is None


def test_an_output_is_cut_at_its_limit() -> None:
    run = Run("yes", limits=PipelineLimits(stream_bytes=100_001))

    assert run.end().reason is ends.BYTES
    assert len(run.output) == 100_001


def test_an_output_of_just_the_limit_is_fine() -> None:
    run = Run("head -c 1000 /dev/zero", limits=PipelineLimits(stream_bytes=1000))

    assert (run.end().reason, len(run.output)) == (None, 1000)


def test_a_stage_does_not_ignore_a_broken_pipe_as_python_does() -> None:
    run = Run("grep SigIgn /proc/self/status")

    run.end()

    ignored = int(run.output.split()[1], 16)
    assert not ignored & 1 << signal.SIGPIPE - 1
