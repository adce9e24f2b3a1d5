"""`fdstore pipe` and `fdstore tail`, as people run them, with a real worker beside them."""

from __future__ import annotations

import base64
import gzip
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

import fdstore
from fdstore.cli.happenings import Happening
from fdstore.cli.watch import TreeWatcher
from fdstore.store.keys import process_keys
from fdstore.store.processes import pipelines
from fdstore.tools.process_task import PipeTask, encode_task
from tests.waiting import PATIENCE_S, wait_until

TEXT = "an x\nnone\nx again\n"


@pytest.fixture
def worker(start_worker) -> Iterator[None]:
    """A worker beside the embedded server."""
    with start_worker():
        yield


def test_a_worker_runs_allowed_commands_and_names_the_option_that_allows_others(command, proc, start_worker):
    proc.create(TEXT)

    with start_worker("--allow-command", "grep"):
        found = command("pipe", "triage", "-i", "fd:1", "--", "grep", "x")
        refused = command("pipe", "triage", "-i", "fd:1", "--no-wait", "--", "grep", "x", "|", "sort")
        status = command("status")

    assert found.out == "an x\nx again\n"
    assert refused.code == 1
    assert "no worker of this store may run it; " in refused.err
    assert " says: the command 'sort' is not allowed on this worker" in refused.err
    assert "its operator allows it with --allow-command 'sort'" in refused.err
    assert "allowed: grep" in status.out
    assert "commands run " in status.out


@pytest.mark.thorough("a worker of its own")
def test_a_pipeline_that_no_worker_may_run_waits_for_one_that_may(command, proc, start_worker):
    proc.create("b\na\n")

    with start_worker("--allow-command", "grep"):
        command("pipe", "triage", "-i", "fd:1", "--detach", "--", "sort")
        wait_until(lambda: "no live worker accepts it" in command("ps").out)
        with start_worker("--allow-command", "sort"):
            sorted_text = command("tail", "triage", "fd:2", "-f")

    assert sorted_text.out == "a\nb\n"


def test_a_command_line_given_as_one_word_is_split(command, proc, worker):
    proc.create(TEXT)

    found = command("pipe", "triage", "-i", "fd:1", "grep -n 'x a' | cat")

    assert (found.out, found.code) == ("3:x again\n", 0)
    told: list[Happening] = []
    TreeWatcher(proc.store, "triage", told.append).look()
    _, ran, *_, ended = [each for each in told if each.process == "triage.1"]
    assert (ran.what, ended.what) == ("runs grep -n 'x a' | cat", "exited with code 0")
    assert ran.passed_s <= ended.passed_s


def test_a_quoted_pipe_in_one_word_is_a_character(command, proc, worker):
    proc.create("a|b\n")

    for line, output in {
        "tr '|' ','": "a,b\n",
        "cut -d \\| -f 2|cat": "b\n",
        'printf %s "|" | cat - /dev/null': "|",
        "cat": "a|b\n",
    }.items():
        found = command("pipe", "triage", "-i", "fd:1", line)

        assert (found.out, found.code) == (output, 0), found.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("yes||true", "'||' does nothing"),
        ("cat > x", "'>' does nothing"),
        ("cat;ls", "';' does nothing"),
        ("echo $(ls)", "'$(' does nothing"),
        ("cat 'x", "no closing quotation"),
        ("cat |", "stage 2: is empty"),
        ("", "stage 1: is empty"),
    ],
)
def test_syntax_of_a_shell_in_one_word_is_refused_with_advice(command, proc, line, said):
    found = command("pipe", "triage", line)

    assert (found.code, found.out) == (1, "")
    assert said in found.err
    assert "triage.1" not in command("ps", "-a").out


def test_a_reader_that_closes_is_told_that_the_pipeline_goes_on(command, proc, worker):
    read, write = os.pipe()
    with command.start("pipe", "triage", "--", "yes", stdout=write) as process:
        os.close(write)
        os.read(read, 1)
        os.close(read)
        _, err = process.communicate(timeout=PATIENCE_S)
    command("kill", "triage.1")

    assert process.returncode == 141
    assert err.decode().startswith(
        "fdstore: triage.1 is left to the workers: fdstore tail triage fd:1 follows"
    )


BWRAP = """#!/bin/bash
case $1 in
--version) echo bubblewrap 0.9.0; exit;;
--help) echo --clearenv --size --disable-userns --seccomp; exit;;
esac
[ -e {folder}/refuse ] && echo "bwrap: No space left on device" >&2 && exit 1
while [ "$1" != -- ]; do
    [ "$1" = --json-status-fd ] && status=$2
    shift
done
shift
"$@"
code=$?
[ "$status" ] && echo "{{ \\"exit-code\\": $code }}" >&"$status"
exit $code
"""


@pytest.fixture
def bwrap_folder() -> Iterator[Path]:
    """A directory with a substitute for bubblewrap that works until a file `refuse` exists beside it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "bwrap").write_text(BWRAP.format(folder=folder))
        (folder / "bwrap").chmod(0o755)
        yield folder


def test_a_search_without_its_sandbox_is_an_error_and_not_an_empty_result(
    command, proc, start_worker, bwrap_folder
):
    proc.create(TEXT)
    command.environment["PATH"] = f"{bwrap_folder}:{os.environ['PATH']}"

    with start_worker("--sandbox", "bubblewrap"):
        found = command("pipe", "triage", "-i", "fd:1", "--", "grep", "x")
        (bwrap_folder / "refuse").touch()
        failed = command("pipe", "triage", "-i", "fd:1", "--", "grep", "x")

    assert (found.code, found.out) == (0, "an x\nx again\n")
    assert failed.code == 125
    assert failed.err == (
        "bwrap: No space left on device\n"
        "fdstore: triage.2 failed: sandbox: the sandbox of a stage failed, so there is no result\n"
    )
    assert proc.stat("fd:4").reason == "sandbox"


def test_pipe_prints_both_outputs_and_ends_with_its_code(command, proc, worker):
    proc.create(TEXT)

    found = command("pipe", "triage", "-i", "fd:1", "--", "grep", "-n", "x", "|", "wc", "-l")
    nothing = command("pipe", "triage", "-i", "fd:1", "--", "grep", "nope")
    wrong = command("pipe", "triage", "-i", "fd:1", "--", "ls", "/there-is-no-such-file")

    assert (found.code, found.out.strip()) == (0, "2")
    assert found.err == ""
    assert (nothing.code, nothing.out) == (1, "")
    assert (wrong.code, wrong.out) == (2, "")
    assert "No such file or directory" in wrong.err
    assert proc.read("fd:2").chain == "0,0"


@pytest.mark.thorough("a worker of its own")
def test_pipe_prints_the_partial_output_of_a_killed_pipeline_and_reports_the_kill(command, proc, worker):
    with proc.open_stream(source="feed") as feed:
        feed.write("one\n")
        feed.flush()
        with command.start("pipe", "triage", "-i", feed.fd, "--", "cat") as watching:
            first = watching.stdout.read(4)
            command("kill", "triage.1")
            rest, err = watching.communicate(timeout=PATIENCE_S)

    assert (first, rest, watching.returncode) == (b"one\n", b"", 1)
    assert err.startswith(b"fdstore: stream_broken: ")
    assert b"cancelled" in err


@pytest.mark.thorough("a worker of its own")
def test_pipe_writes_bytes_as_they_are_and_refuses_a_terminal(command, proc, worker):
    proc.create(TEXT)

    packed = command("pipe", "triage", "-i", "fd:1", "--", "gzip", "-c")
    unpacked = command("pipe", "triage", "-i", "fd:2", "--", "gzip", "-dc")
    refused = command.on_terminal("pipe", "triage", "-i", "fd:1", "--", "gzip", "-c")
    as_json = command("pipe", "triage", "-i", "fd:1", "--json", "--", "gzip", "-c")
    text = command("pipe", "triage", "-i", "fd:1", "--json", "--", "sort").documents

    assert gzip.decompress(packed.raw) == TEXT.encode()
    assert (packed.code, packed.err) == (0, "")
    assert (unpacked.code, unpacked.out) == (0, TEXT)
    assert (refused.code, refused.raw) == (1, b"")
    assert "is application/octet-stream" in refused.err
    assert "write it to a file with > FILE" in refused.err
    chunk = as_json.document
    assert gzip.decompress(base64.b64decode(chunk["base64"])) == TEXT.encode()
    assert "".join(piece["text"] for piece in text) == "an x\nnone\nx again\n"


@pytest.mark.thorough("a worker of its own")
def test_a_detached_pipe_prints_its_process_and_descriptors_and_ps_its_commands(command, proc, worker):
    proc.create(TEXT)

    made = command("pipe", "triage", "-i", "fd:1", "--tee", "1", "--detach", "--", "sort", "|", "cat")
    command("pipe", "triage", "-i", "fd:1", "--", "sort", "|", "false")

    assert [line.split() for line in made.lines] == [
        ["process", "triage.1"],
        ["output", "fd:2"],
        ["stderr", "fd:3"],
        ["tee", "fd:4"],
    ]
    assert command("tail", "triage", "fd:2", "-f").out == "an x\nnone\nx again\n"
    assert command("cat", "triage", "fd:4").out == "an x\nnone\nx again\n"
    [line] = [line for line in command("ps", "-a").lines if "triage.2" in line]
    assert re.search("exited .* sort \\| false .*exit code 1", line)


def test_the_pipeline_continues_after_its_watcher_leaves(command, proc, worker):
    with proc.open_stream(source="feed") as feed:
        feed.write("one\n")
        feed.flush()
        with command.start("pipe", "triage", "-i", feed.fd, "--", "cat") as watching:
            assert watching.stdout.read(4) == b"one\n"
            watching.send_signal(signal.SIGINT)
            watching.communicate(timeout=PATIENCE_S)
        feed.write("two\n")

    assert watching.returncode == 130
    assert proc.read("fd:2", read_all=True, wait=20).text == "one\ntwo\n"


def test_tail_begins_with_the_last_lines_and_follows_to_the_end(command, proc):
    with proc.open_stream(source="build") as out:
        out.write("".join(f"line {number}\n" for number in range(1, 31)))
        out.flush()
        with command.start("tail", "triage", out.fd, "-f", "-n", "2") as following:
            first = following.stdout.read(len("line 29\nline 30\n"))
            out.write("line 31\n")
            out.end()
            rest, err = following.communicate(timeout=PATIENCE_S)

    assert (first, rest, err) == (b"line 29\nline 30\n", b"line 31\n", b"")
    assert following.returncode == 0
    assert command("tail", "triage", out.fd, "-n", "1").out == "line 31\n"


@pytest.mark.parametrize("words", ["-n +3", "-n +0", "-n 2", "-n -2", "-n 0", "-n +9", "-n +4"])
def test_tail_prints_the_same_lines_as_the_system_tail(command, store, words):
    text = "one\ntwo\nthree\nfo\u00fcr"
    store.process("triage").create(text, page_size=5)

    theirs = subprocess.run(
        ["tail", *words.split()], input=text.encode(), capture_output=True, timeout=PATIENCE_S
    )

    assert command("tail", "triage", "1", *words.split()).raw == theirs.stdout
    assert command("tail", "triage", "1", "-f", *words.split()).raw == theirs.stdout


def test_tail_from_a_line_not_written_yet_waits_for_it(command, proc):
    with proc.open_stream(source="build") as out:
        out.write("one\ntw")
        out.flush()
        with command.start("tail", "triage", out.fd, "-f", "-n", "+4") as following:
            for piece in ("o\nthr", "ee\n", "four\n", "five\n"):
                out.write(piece)
                out.flush()
            out.end()
            printed, err = following.communicate(timeout=PATIENCE_S)

    assert (following.returncode, printed, err) == (0, b"four\nfive\n", b"")


def test_tail_of_a_broken_stream_prints_all_of_it_and_the_reason(command, store):
    out = store.process("triage").open_stream(source="build")
    out.write("half\n")
    out.fail("signal 9")

    for options in (["-f"], []):
        ended = command("tail", "triage", out.fd, *options)

        assert (ended.code, ended.out) == (1, "half\n")
        assert ended.err.startswith("fdstore: stream_broken: ")
        assert "signal 9" in ended.err


def test_tail_can_print_json(command, store):
    out = store.process("triage").open_stream(source="build")
    out.write("one\ntwo\n")
    out.end()

    last = command("tail", "triage", "1", "-n", "1", "--json")
    rest = command("tail", "triage", "1", "-n", "0", "-f", "--json")
    whole = command("--json", "tail", "triage", "1", "-f")

    assert last.out == '{"fd":"fd:1","text":"two\\n"}\n'
    assert rest.out == ""
    assert "".join(piece["text"] for piece in whole.documents) == "one\ntwo\n"


def test_only_reading_to_the_end_of_a_broken_stream_reports_the_reason(command, store):
    out = store.process("triage").open_stream(source="build", page_size=5)
    out.write("half\nand a half")
    out.fail("signal 9")

    first, last = command("read", "triage", out.fd), command("read", "triage", f"{out.fd}#P3")

    assert (first.code, first.out, first.err) == (0, "half\n", "")
    assert (last.code, last.out) == (1, " half")
    assert "signal 9" in last.err
    assert '"reason":"signal 9"' in command("read", "triage", out.fd, "--json").out
    assert "broken (signal 9)" in command("ls", "triage").out
    assert "broken (signal 9)" in command("stat", "triage", out.fd).out


def test_pipe_without_a_worker_explains_the_wait_or_is_refused_with_no_wait(make_command, redis_url):
    command = make_command(FDSTORE_URL=redis_url)
    with fdstore.connect(redis_url) as store:
        store.process("triage").create(TEXT)

        refused = command("pipe", "triage", "--no-wait", "-i", "fd:1", "--", "cat")
        made_before = [process.id for process in store.processes()]
    with command.start("pipe", "triage", "-i", "fd:1", "--", "cat") as waiting:
        told = waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        _, left = waiting.communicate()

    why = "no worker takes processes of this store; start one with: fdstore worker, or fdstore up"
    assert (refused.code, refused.err) == (1, f"fdstore: no_worker: {why}\n")
    assert made_before == ["triage"]
    assert told.decode() == f"fdstore: triage.1 waits for a worker: {why}\n"
    assert left.decode() == (
        "fdstore: triage.1 is left to the workers: fdstore tail triage fd:2 follows its output, "
        "fdstore kill triage.1 drops it\n"
    )


def test_pipe_starts_a_worker_for_the_embedded_store_if_none_lives(fresh):
    fresh("put", "triage", "-", stdin=TEXT.encode())

    refused = fresh("pipe", "triage", "--no-wait", "-i", "fd:1", "--", "grep", "x")
    found = fresh("pipe", "triage", "-i", "fd:1", "--", "grep", "x")
    again = fresh("pipe", "triage", "--no-wait", "-i", "fd:1", "--", "grep", "-c", "x")

    assert refused.code == 1
    assert found.out == "an x\nx again\n"
    assert again.out == "2\n"


@pytest.mark.thorough("some seconds of silence")
def test_who_follows_a_lost_pipeline_without_workers_is_told(command, proc):
    task = PipeTask(commands=[["sort"]], page_size=4096)
    made = proc.store.run(pipelines.start(proc.handle, encode_task(task), title="sort"))
    record = process_keys(proc.store.prefix, made.process).record
    with redis.Redis.from_url(proc.store.url) as plain:
        plain.hset(record, mapping={"state": "running", "worker": "gone:1", "lease_until": 1})

    with command.start("tail", "triage", made.fd, "-f") as following:
        said = following.stderr.readline()
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=PATIENCE_S)

    assert said.decode() == (
        "fdstore: triage.1: the lease of gone:1 has expired; no worker takes processes of this store; "
        "start one with: fdstore worker, or fdstore up\n"
    )
