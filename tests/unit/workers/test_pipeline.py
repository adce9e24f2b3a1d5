"""Pipelines of real programs: their output, and that nothing hangs or remains."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.errors import InvalidArgument
from fdstore.model import ends
from fdstore.model.pipeline_limits import PipelineLimits
from fdstore_workers.pipeline.pipes import BranchClosed
from fdstore_workers.pipeline.process_tree import MARK
from tests.unit.workers.running import BLOCK, Run, blocks, shell

pytestmark = pytest.mark.usefixtures("nothing_left")


def closed(_: bytes) -> None:
    raise BranchClosed


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


def test_closing_stderr_does_not_affect_its_stage() -> None:
    def error(number: int, piece: bytes) -> None:
        raise BranchClosed

    run = Run(shell("for i in 1 2 3; do head -c 100000 /dev/zero >&2; done; echo done"), error=error)

    assert run.end().codes == (0,)
    assert run.output == b"done\n"


def test_when_every_branch_is_closed_the_source_is_stopped() -> None:
    run = Run("yes", "cat", output=closed)

    assert run.end().reason is ends.CLOSED


def test_a_source_that_writes_nothing_more_is_stopped_too_when_every_branch_is_closed() -> None:
    run = Run(shell("echo one; exec sleep 100"), output=closed)

    assert run.end().reason is ends.CLOSED


@pytest.mark.parametrize("seconds", [2_147_483, 2_147_484, 3e6, 1e9])
def test_limits_of_any_allowed_length_run(seconds: float) -> None:
    limits = PipelineLimits(wall_seconds=seconds, stream_idle_seconds=seconds)

    ended = Run("cat", "cat", feed=iter([b"text"]), limits=limits)

    assert (ended.end().codes, ended.output) == ((0, 0), b"text")
