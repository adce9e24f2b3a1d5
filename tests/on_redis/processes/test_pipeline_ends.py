"""The end of a pipeline in the store: its process, its outputs and their states. The pipeline runs in this
process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from fdstore.client import Process, Store
from fdstore.files.permissions import Permissions
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import pipelines, process_records
from fdstore.store.processes.pipelines import PipeFds
from fdstore.text.utf8 import HEAD_BYTES
from fdstore.tools.process_task import PipeTask, encode_task
from fdstore_workers.pipeline.choose_sandbox import Sandbox
from fdstore_workers.pipeline.command_limits import CommandLimits
from fdstore_workers.pipeline.launch_settings import NOT_MADE
from fdstore_workers.pipeline.run_pipeline import run_pipeline
from fdstore_workers.pipeline.sandlock_engine import Sandlock
from fdstore_workers.pipeline.unsandboxed import Unsandboxed
from tests.on_redis.conftest import Execute
from tests.on_redis.running_agents import running

Start = Callable[..., PipeFds]
RunToEnd = Callable[[PipeFds], ProcessRecord]

WITHOUT = Unsandboxed("the test needs none", CommandLimits(), None)


@pytest.fixture
def start(proc: Process) -> Start:
    """`start("seq 3", "cat", tee=[1])`: a pipeline that is ready to be run."""

    def begin(*commands: str, tee: tuple[int, ...] = (), in_fd: str | None = None) -> PipeFds:
        brief = PipeTask(commands=[command.split(" ") for command in commands], page_size=4000, tee=list(tee))
        begun = pipelines.start(proc.handle, encode_task(brief), title="it", tees=tee, in_fd=in_fd)
        return proc.store.run(begun)

    return begin


@pytest.fixture
def sandbox() -> Sandbox:
    return WITHOUT


@pytest.fixture
def run_to_end(store: Store, tmp_path: Path, sandbox: Sandbox) -> RunToEnd:
    """Return a function that runs a pipeline and returns the record of its process."""

    def run(made: PipeFds) -> ProcessRecord:
        with running(store, [], tmp_path) as agents:
            agents.attempt(made.process, pipeline=partial(run_pipeline, lambda: sandbox, Permissions()))
        return store.run(process_records.record("fdstore", made.process))

    return run


@pytest.fixture
def refused_pieces(execute: Execute) -> Iterator[None]:
    """A piece for a content without holders leaves a string for a second (`hset_if_accepted`)."""
    yield
    for key in execute("KEYS", "*:pages"):
        if execute("TYPE", key) == b"string":
            assert 0 <= execute("PTTL", key) <= 1000
            execute("DEL", key)


def text(proc: Process, fd: str) -> str:
    return proc.read(fd, read_all=True).text


# --- branches that nobody reads


@pytest.mark.usefixtures("refused_pieces")
def test_a_tee_is_complete_and_sealed_even_if_the_output_was_closed(
    proc: Process, start: Start, run_to_end: RunToEnd
) -> None:
    made = start("seq 1 100000", "cat", tee=(1,))
    proc.close(made.fd)

    ended = run_to_end(made)

    [tee] = made.tee_fds
    assert text(proc, tee) == "".join(f"{number}\n" for number in range(1, 100_001))
    assert (proc.stat(tee).state, proc.stat(tee).exit_code) == ("sealed", 0)
    assert (ended.state, ended.exit_code, ended.reason) == ("exited", 0, None)
    assert proc.stat(made.stderr_fd).state == "sealed"


@pytest.mark.usefixtures("refused_pieces")
def test_the_output_is_complete_and_sealed_even_if_the_tees_were_closed(
    proc: Process, start: Start, run_to_end: RunToEnd
) -> None:
    made = start("seq 1 100000", "cat", "tail -n 1", tee=(1, 2, 3))
    for tee in made.tee_fds:
        proc.close(tee)

    ended = run_to_end(made)

    assert text(proc, made.fd) == "100000\n"
    assert (proc.stat(made.fd).state, ended.exit_code, ended.reason) == ("sealed", 0, None)


@pytest.mark.parametrize("close_output", [True, False])
def test_a_stage_killed_by_a_signal_breaks_its_outputs_after_their_text(
    proc: Process, start: Start, run_to_end: RunToEnd, tmp_path: Path, close_output: bool
) -> None:
    (tmp_path / "killed").write_text("echo before\nkill -9 $$\n")
    made = start(f"sh {tmp_path}/killed", "cat", tee=(1,))
    if close_output:
        proc.close(made.fd)

    ended = run_to_end(made)

    for fd in made.tee_fds if close_output else (made.fd, *made.tee_fds):
        assert text(proc, fd) == "before\n"
        assert (proc.stat(fd).state, proc.stat(fd).reason) == ("broken", "signal 9")
    assert (ended.state, ended.exit_code, ended.reason) == ("exited", 137, "signal 9")


# --- bytes that are no text


@pytest.mark.parametrize(
    ("commands", "tee"),
    [
        (["cat"], ()),
        (["cat"], (1,)),
        (["cat", "cat"], (1,)),
        (["cat", "wc -c"], (1,)),
        (["cat"] * 3, (1, 2, 3)),
    ],
)
def test_invalid_bytes_in_text_are_counted_once_for_any_number_of_outputs(
    proc: Process,
    start: Start,
    run_to_end: RunToEnd,
    tmp_path: Path,
    commands: list[str],
    tee: tuple[int, ...],
) -> None:
    head = "x" * HEAD_BYTES
    (tmp_path / "latin-1").write_bytes(head.encode() + b"caf\xe9 na\xefve\n")
    made = start(f"cat {tmp_path}/latin-1", *commands, tee=tuple(number + 1 for number in tee))

    run_to_end(made)

    shown = head + "caf\\xe9 na\\xefve\n"
    assert all(text(proc, fd) == shown for fd in made.tee_fds)
    told = (
        "" if not tee and "wc" in commands[-1] else "fdstore: 2 bytes were not UTF-8 and are shown as \\xNN\n"
    )
    assert text(proc, made.stderr_fd) == told


# --- a sandbox that cannot be made


@pytest.mark.parametrize(
    "sandbox", [Sandlock(["/no/such/program"], CommandLimits(), "sandlock", [], own_namespaces=False)]
)
def test_a_search_without_its_sandbox_fails_instead_of_finding_nothing(
    proc: Process, start: Start, run_to_end: RunToEnd
) -> None:
    source = proc.create("wanted\n").fd
    made = start("grep wanted", "cat", tee=(1,), in_fd=source)

    ended = run_to_end(made)

    assert (ended.state, ended.exit_code, ended.reason) == ("failed", NOT_MADE, "sandbox")
    for fd in (made.fd, made.stderr_fd, *made.tee_fds):
        assert (proc.stat(fd).state, proc.stat(fd).reason) == ("broken", "sandbox")
    assert "fdstore: no sandbox: " in text(proc, made.stderr_fd)
