"""The verb pipe: run commands over a content."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.interrupts import as_interrupts
from fdstore.cli.reading import expect
from fdstore.cli.session import CliSession, raw_option, verb
from fdstore.cli.standstill import report_standstill
from fdstore.errors import StreamBroken

if TYPE_CHECKING:
    from fdstore.client import Process
    from fdstore.store.processes.pipelines import PipeFds

END_S = 30.0
"""The time to wait for the end of a pipeline after its output has ended; a lost worker takes longest."""


@verb
@click.argument("process", metavar="PROC")
@click.argument("words", metavar="COMMAND ['|' COMMAND]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("-i", "--input", "given", metavar="FD", help="Input of the first command. [default: empty]")
@click.option(
    "--tee", "tees", metavar="STAGE", multiple=True, type=int, help="Also store this stage's output."
)
@click.option("--detach", is_flag=True, help="Print the descriptors and return immediately.")
@click.option("--no-wait", is_flag=True, help="Fail without starting anything if no worker is running.")
@raw_option
def pipe(
    session: CliSession,
    process: str,
    words: tuple[str, ...],
    given: str | None,
    tees: tuple[int, ...],
    detach: bool,
    no_wait: bool,
    raw: bool,
) -> None:
    """Run commands over a stored text, or bytes, on a worker, and print their output as it grows.

    \b
    fdstore pipe triage -i fd:1 -- grep -n ERROR '|' sort '|' uniq -c
    fdstore pipe triage -i fd:1 'grep -n ERROR | head'
    fdstore pipe triage -i fd:1 -- gzip -c > log.gz

    Words of their own are passed as they are, but for '|' between commands. In one text, words are quoted as
    in a shell, a quoted '|' is a character like others, and other syntax of a shell is refused.

    An output that is not UTF-8 is bytes: they are written as they are, but to a terminal only with --raw.

    On the embedded store a worker is started if none runs.

    The exit code is the pipeline's, 128+n if signal n ended it, 125 if the sandbox failed. Ctrl-C, and a
    reader that closes, leave it to the workers. With --json each line is a chunk of the output.
    """
    from fdstore.agents.runtime.local_worker import ensure_worker
    from fdstore.agents.runtime.waker import waker
    from fdstore.model import ends
    from fdstore.store.processes import pipelines, process_records, waiting
    from fdstore.store.views import worker_check
    from fdstore.text.commands import check_tees, parse, programs_in, stages_in
    from fdstore.text.paging import DEFAULT_PAGE_SIZE
    from fdstore.text.selection import fd_id
    from fdstore.tools.process_task import PipeTask, encode_task

    lines = stages_in(words[0]) if len(words) == 1 else [shlex.join(stage) for stage in _stages(words)]
    commands = parse(lines, programs_in(lines))
    check_tees(tees, len(commands))
    task = PipeTask(
        commands=[list(each.argv) for each in commands], page_size=DEFAULT_PAGE_SIZE, tee=list(tees)
    )
    with session.process(process, use="make") as caller:
        wake = waker(caller.store.url, caller.store.prefix)
        if no_wait:
            programs = [each.argv[0] for each in commands]
            caller.store.run(
                worker_check.require_worker(caller.store.prefix, for_agents=False, commands=programs)
            )
        else:
            ensure_worker(caller.store.url, caller.store.prefix)
        made = caller.store.run(
            pipelines.start(
                caller.handle,
                encode_task(task),
                title=" | ".join(lines)[:150],
                in_fd=None if given is None else fd_id(given),
                tees=tees,
            )
        )
        wake(made.process)
        if detach:
            _print_made(session, made)
            return
        output.note(f"{made.process} writes its output to {made.fd} and its errors to {made.stderr_fd}")
        broken = None
        try:
            pieces = output.Pieces(made.fd, as_json=session.as_json, raw=raw)
            with as_interrupts(), report_standstill(caller.store, made.process):
                _print_output(caller, pieces, made.fd, to_terminal=raw or session.as_json)
        except StreamBroken as error:
            broken = error
        except (KeyboardInterrupt, BrokenPipeError):
            with suppress(OSError):  # the terminal may be gone
                output.say(
                    f"fdstore: {made.process} is left to the workers: fdstore tail {process} {made.fd} "
                    f"follows its output, fdstore kill {made.process} drops it"
                )
            raise
        # the process ends a moment after its output, and has the exit code
        caller.store.run(waiting.wait_until_ended(caller.store.prefix, [made.process], END_S))
        errors = caller.read(made.stderr_fd, read_all=True).text
        output.errors(errors, raw=raw)
        ended = caller.store.run(process_records.record(caller.store.prefix, made.process))
    output.finish()
    reason = ends.find(ended.reason)
    if reason is not None and reason.exit_code is not None:
        output.say(f"fdstore: {ended.id} {ended.state}: {ended.reason}: {reason.when}")
        sys.exit(reason.exit_code)
    if ended.state == "failed" and not (broken is not None and broken.reason == ended.reason):
        output.say(f"fdstore: {ended.id} {ended.state}: {ended.reason}")
    if broken is not None and ended.state != "exited":
        raise broken
    sys.exit(ended.exit_code or 0)


def _print_output(caller: Process, pieces: output.Pieces, fd: str, *, to_terminal: bool) -> None:
    """Print the output of a pipeline to its end, following it. Raises `StreamBroken`, and `BytesOnTerminal`,
    after which the pipeline goes on."""
    is_known = False
    try:
        for piece in caller.follow_bytes(fd):
            if not is_known:
                expect(pieces, caller.stat(fd), to_terminal=to_terminal)
                is_known = True
            pieces.print(piece)
    finally:
        pieces.end()


def _stages(words: tuple[str, ...]) -> list[list[str]]:
    stages: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            stages.append([])
        else:
            stages[-1].append(word)
    return stages


def _print_made(session: CliSession, made: PipeFds) -> None:
    if session.as_json:
        output.document(made)
        return
    output.line(f"process  {made.process}\noutput   {made.fd}\nstderr   {made.stderr_fd}")
    for fd in made.tee_fds:
        output.line(f"tee      {fd}")
