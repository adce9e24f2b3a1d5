"""The command line, as people and scripts use it: what it prints, and how it ends."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from click.testing import CliRunner

import fdstore
from fdstore.cli import VERBS, cli, load_verb
from fdstore.local.redis_server import PrivateServer, ServerStatus
from fdstore.records import Descriptor, Export, ProcessRecord, Slice, TreeLimits
from fdstore.store import processes
from fdstore.testing import ScriptedModel, fail, say
from tests.children import Child
from tests.waiting import wait_until

CLOSED_PORT_URL = "redis://:secret@127.0.0.1:1"
HERE = [
    name
    for section in VERBS.values()
    for name, (home, _) in section.items()
    if find_spec(home.partition(":")[0]) is not None
]


def decoded(line: str, kind: Any) -> Any:
    return msgspec.json.decode(line, type=kind)


# --- storing and showing


def test_a_file_is_put_listed_and_read_back(command, tmp_path):
    (tmp_path / "build.log").write_bytes(b"one\ntwo\nthree\n")

    made = command("put", "triage", "build.log", "--page-size", "8")
    listed = command("ls", "triage")
    read = command("read", "triage", "fd:1", "--start", "2")

    assert (made.code, made.out, made.err) == (0, "fd:1\n", "")
    assert " ".join(listed.lines[0].split()) == "FD STATE CHARS SIZE LINES PAGES CREATED PRODUCER SOURCE"
    assert listed.lines[1].split()[:4] == ["fd:1", "sealed", "14", "14"]
    assert listed.lines[1].endswith("build.log")
    assert read.raw == b"three\n"


def test_put_with_a_dash_reads_standard_input(command, store):
    command("put", "triage", "-", stdin=b"a\r\nb\0")
    command("put", "triage", "-", "--source", "by hand", stdin=b"")

    first, second = store.process("triage").list()
    assert (first.source, first.chars, second.source, second.chars) == ("stdin", 5, "by hand", 0)
    assert command("cat", "triage", "1").raw == b"a\r\nb\0"


def test_one_ctrl_d_ends_a_put_from_a_terminal(command, store):
    ours, theirs = pty.openpty()
    with command.start("put", "triage", "-", stdin=theirs) as putting:
        os.close(theirs)
        try:
            os.write(ours, "typed\nna\u00efve\n\x04".encode())
            out, _ = putting.communicate(timeout=20)
        finally:
            os.close(ours)

    assert out == b"fd:1\n"
    assert store.process("triage").read("fd:1").text == "typed\nna\u00efve\n"


def test_bytes_that_are_not_utf8_are_refused_or_escaped_as_requested(command, tmp_path):
    (tmp_path / "latin").write_bytes(b"caf\xe9\n")

    refused = command("put", "triage", "latin")
    kept = command("put", "triage", "latin", "--errors", "backslashreplace")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("fdstore: invalid_argument: ")
    assert "backslashreplace" in refused.err
    assert kept.code == 0
    assert command("cat", "triage", kept.out.strip()).raw == b"caf\\xe9\n"


def test_putting_a_missing_file_creates_no_process(command, store):
    ended = command("put", "triage", "nope.log")

    assert (ended.code, ended.err.split(":")[1].strip()) == (1, "file_not_found")
    assert store.processes() == []


def test_stat_names_the_source_of_an_extraction(command, store):
    proc = store.process("triage")
    proc.create("one\ntwo\nthree\n", source="web")
    proc.extract("fd:1#L2-3")

    ended = command("stat", "triage", "2")

    shown = dict(line.split(maxsplit=1) for line in ended.lines)
    assert shown["fd"] == "fd:2"
    assert shown["lines"] == "2"
    assert "cut from  lines 2-3, characters 5-14 of fd:1 (triage/1)" in ended.out


@pytest.mark.parametrize(
    "asked",
    [
        ["fd:1#L2-3"],
        ["fd-1", "--mode", "line", "--start", "2", "--count", "2"],
        ["1#C5-14"],
        ["ref:plan#L2-9"],
        ["fd:1", "--lines", "2-3"],
        ["fd:1", "--chars", "5-14"],
    ],
)
def test_a_part_is_read_by_selector_or_by_options(command, store, asked):
    proc = store.process("triage")
    proc.create("one\ntwo\nthree\n")
    store.run(fdstore.store.contents.create(proc.handle, "one\ntwo\nthree\n", "answer", name="ref:plan"))

    ended = command("read", "triage", *asked)

    assert (ended.code, ended.raw) == (0, b"two\nthree\n")


def test_read_all_prints_the_complete_text(command, store):
    store.process("triage").create("a\nb\nc", page_size=2)

    assert command("read", "triage", "1", "--all").raw == b"a\nb\nc"
    assert command("read", "triage", "1").raw == b"a\n"


def test_a_large_content_is_printed_exactly_and_in_bounded_memory(command, tmp_path):
    text = "".join(f"line {number}: na\u00efve \u6f22\u5b57\n" for number in range(1_500_000)).encode()
    (tmp_path / "large").write_bytes(text)
    command("put", "triage", "large")

    with command.start("cat", "triage", "1") as process:
        most = process.stdout.read(30_000_000)
        status = Path(f"/proc/{process.pid}/status").read_text()
        rest = process.stdout.read()

    assert process.returncode == 0
    assert most + rest == text
    peak_kb = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    assert len(text) > 35_000_000
    assert peak_kb * 1024 < 64_000_000  # Python and its modules take 30


def test_cat_prints_the_part_a_selector_names(command, store):
    store.process("triage").create("one\ntwo\nthree\n", page_size=4)

    assert command("cat", "triage", "fd:1#L2-2").raw == b"two\n"
    pieces = [decoded(line, dict) for line in command("cat", "triage", "fd:1", "--json").lines]
    assert "".join(piece["text"] for piece in pieces) == "one\ntwo\nthree\n"


def test_cat_ends_silently_when_its_reader_closes_the_pipe(command, store):
    store.process("triage").create("x" * 5_000_000)

    with command.start("cat", "triage", "1") as process:
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()

    assert (process.returncode, err) == (141, b"")


def test_a_full_output_device_is_an_error(command, store):
    store.process("triage").create("x" * 5_000)

    with Path("/dev/full").open("wb") as full, command.start("cat", "triage", "1", stdout=full) as process:
        err = process.stderr.read().decode()

    assert process.returncode == 1
    assert err.startswith("fdstore: write_error: standard output failed: no space left")


def test_export_writes_appends_or_refuses_as_requested(command, store, tmp_path):
    store.process("triage").create("one\ntwo\n")

    written = command("export", "triage", "fd:1", "out.txt")
    appended = command("export", "triage", "fd:1#L2-2", "out.txt", "--append")
    refused = command("export", "triage", "fd:1", "out.txt", "--no-clobber")
    missing = command("export", "triage", "fd:1", "other.txt", "--no-create")
    nowhere = command("export", "triage", "fd:1", "no folder/out.txt", "--no-create")

    assert written.out == "8 characters written to out.txt (8 B)\n"
    assert appended.out == "4 characters appended to out.txt (12 B)\n"
    assert (tmp_path / "out.txt").read_text() == "one\ntwo\ntwo\n"
    assert (refused.code, missing.code) == (1, 1)
    assert "file_exists" in refused.err
    assert "--no-clobber" in refused.err
    assert "file_not_found" in missing.err
    assert "leave out --no-create to create it" in missing.err
    assert nowhere.err.endswith("its directory does not exist; use one that does\n")
    assert not (tmp_path / "other.txt").exists()


def test_run_refuses_a_name_that_is_taken(command, store, tmp_path):
    store.process("triage")
    (tmp_path / "agent.toml").write_text('[model]\nname = "any"\n[prompt]\nsystem = "You wait."\n')

    ended = command("run", "agent.toml", "-p", "go", "--name", "triage")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fdstore: invalid_argument: name: process triage exists already")
    assert [process.id for process in store.processes()] == ["triage"]


def test_rm_removes_what_it_can_and_reports_the_others(command, store):
    proc = store.process("triage")
    for text in "abc":
        proc.create(text)

    ended = command("rm", "triage", "1", "fd:9", "fd-3")

    assert (ended.code, ended.lines) == (1, ["closed fd:1", "closed fd:3"])
    assert ended.err == "fdstore: not_found: fd:9 does not exist; there are: fd:2, fd:3\n"
    assert [descriptor.fd for descriptor in proc.list()] == ["fd:2"]


def test_rm_with_a_typo_removes_nothing(command, store):
    proc = store.process("triage")
    proc.create("a")

    assert command("rm", "triage", "1", "fd:x").code == 1
    assert len(proc.list()) == 1


def test_ps_draws_each_tree_with_ended_processes(command, store):
    root = store.process("triage")
    first = root.child()
    first.child()
    root.child().end()
    store.process("other")

    everything = command("ps")
    one = command("ps", "triage")

    state = everything.lines[0].index("STATE")
    assert [line[:state].rstrip() for line in everything.lines] == [
        "PROCESS",
        "other",
        "triage",
        "├─ triage.1",
        "│  └─ triage.1.1",
        "└─ triage.2",
    ]
    assert "exited" in everything.lines[-1]
    assert len(one.lines) == 6
    assert one.lines[-1].startswith("uses depth 3 of 8, live 3 of 64, processes 4 of 1 000, ")
    assert command("ps", "nope").err.startswith("fdstore: not_found: tree nope does not exist; there are: ")


# --- JSON


def test_json_output_is_one_document_or_one_per_line(command, store, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")

    put = command("put", "triage", "a.txt", "--json")
    listed = command("ls", "triage", "--json")
    stat = command("stat", "triage", "1", "--json")
    read = command("read", "triage", "1", "--json")
    exported = command("export", "triage", "1", "b.txt", "--json")
    processes = command("ps", "--json")
    removed = command("rm", "triage", "1", "--json")
    nothing = command("ls", "triage", "--json")

    made = decoded(put.out, Descriptor)
    assert [decoded(line, Descriptor) for line in listed.lines] == [made]
    assert decoded(stat.out, Descriptor) == made
    assert decoded(read.out, Slice).text == "one\n"
    assert decoded(exported.out, Export).char_count == 4
    assert [decoded(line, ProcessRecord).id for line in processes.lines] == ["triage"]
    assert decoded(removed.out, dict) == {"fd": "fd:1", "closed": True}
    assert (nothing.code, nothing.out) == (0, "")


def test_errors_are_json_too_with_the_json_option(command):
    ended = command("ls", "nope", "--json")

    assert (ended.code, ended.out) == (1, "")
    error = decoded(ended.err, dict)["error"]
    assert error["type"] == "not_found"
    assert "process nope does not exist" in error["message"]


# --- errors


@pytest.mark.parametrize("verb", [["ls"], ["stat", "1"], ["read", "1"], ["cat", "1"], ["rm", "1"]])
def test_looking_up_a_missing_process_does_not_create_it(command, store, verb):
    store.process("triage")

    ended = command(verb[0], "tirage", *verb[1:])

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "fdstore: not_found: process tirage does not exist; there are: triage\n"
    assert [process.id for process in store.processes()] == ["triage"]


PYTHON = re.compile(r"\b[a-z]+_[a-z_]+\b|\w=(?:true|false|True|False|\")|\bNone\b|\bstr\b|\bint\b")
"""Words of Python, and not of the command line."""

WRONG = """\
read triage 7
read triage fd:x
read triage fd:1#P9
read triage fd:1#X
read triage 1#L9
read triage 2#P9
read triage 1 --start 0
read triage 1 --pages x
read nope 1
cat triage ref:nope
cat triage 2
stat triage 9
tail triage 9
ls nope
ls Nope!
export triage 1 here.txt --no-clobber
export triage 1 new.txt --no-create
export triage 1 no/new.txt
export triage 1 /dev/null
export triage 1 .
export triage 9 x
search triage 1 (
search triage 1 \\1
search triage 9 x
search triage 1 x -m 0
put triage nope.txt
put triage .
put triage latin
put triage here.txt --encoding nope
put triage.9 here.txt
put triage.1 here.txt
put Nope! here.txt
rm triage 9
rm triage x
pipe triage --tee 3 cat
pipe triage /bin/cat
pipe triage -i 9 cat
pipe triage cat | | cat
kill nope
attach nope
resume nope
resume triage
run nope.toml
run bad.toml
ps nope
limits show nope
limits set trees x"""


def test_no_error_of_a_verb_mentions_python_internals(command, store, tmp_path):
    proc = store.process("triage")
    proc.create("one\n")
    proc.child().end()
    broken = proc.open_stream()
    broken.fail("signal 9")
    (tmp_path / "here.txt").write_text("")
    (tmp_path / "latin").write_bytes(b"\xe9")
    (tmp_path / "bad.toml").write_text("[model")
    wrong = WRONG.split("\n")
    for line in wrong:
        with contextlib.chdir(tmp_path):
            ran = CliRunner().invoke(cli, line.split(), env=command.environment)
        said = re.sub(r"^fdstore: \w+: ", "", ran.stderr)

        assert ran.exit_code in (1, 2), line
        assert said, line
        assert not PYTHON.search(said), (line, said)


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (["read", "triage", "7"], "not_found"),
        (["read", "triage", "fd:1#P9"], "invalid_page"),
        (["read", "triage", "fd:1#L9"], "invalid_range"),
        (["read", "triage", "fd:1#X9"], "invalid_argument"),
        (["put", "Triage!", "/dev/null"], "invalid_argument"),
        (["put", "triage.7", "/dev/null"], "not_found"),
        (["put", "triage", "/"], "permission_error"),
    ],
)
def test_an_error_is_one_line_with_its_type_and_exit_code_1(command, store, args, kind):
    store.process("triage").create("one\n")

    ended = command(*args)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"fdstore: {kind}: ")
    assert ended.err.count("\n") == 1


def test_common_options_are_accepted_before_the_verb_and_overridden_after_it(command, store):
    store.process("triage").create("one\n")

    before = command("--prefix", "other", "--json", "ps")
    both = command("--prefix", "other", "--json", "ps", "--prefix", store.prefix)

    assert (before.code, before.lines) == (0, [])
    assert [decoded(line, ProcessRecord).id for line in both.lines] == ["triage"]
    assert command("--url", "http://x", "worker").err.startswith("fdstore: invalid_argument: url")


WORDS = {
    "put": "p /dev/null",
    "ls": "p",
    "stat": "p 1",
    "read": "p 1",
    "cat": "p 1",
    "search": "p 1 x",
    "tail": "p 1",
    "export": "p 1 out",
    "rm": "p 1",
    "pipe": "p cat",
    "attach": "p",
    "resume": "p",
    "kill": "p",
    "run": "agent.toml",
    "holders": "p 1",
    "find": "x",
}
"""What a verb wants beside its options."""


@pytest.mark.parametrize(
    "url", ["redis://h?foo=x", "redis://h/abc", "http://x", "redis://[x", "redis+cluster://h/1"]
)
def test_a_url_that_cannot_be_used_is_one_line_and_exit_code_2_from_every_verb(make_command, tmp_path, url):
    (tmp_path / "agent.toml").write_text('[model]\nname = "any"\n[prompt]\nsystem = "You wait."\n')
    verbs = [name for name in HERE if name != "completion"] if url.endswith("foo=x") else ["ls", "worker"]
    for name in verbs:
        words = WORDS.get(name, "").split()
        if name == "worker":
            ended = make_command(FDSTORE_URL=url)(name)
            code, out, err = ended.code, ended.out, ended.err
        else:
            environment = {**make_command(FDSTORE_URL=url).environment}
            with contextlib.chdir(tmp_path):
                ran = CliRunner().invoke(cli, [name, *words], env=environment)
            code, out, err = ran.exit_code, ran.stdout, ran.stderr

        assert (name, code, out) == (name, 2, "")
        assert err.startswith("fdstore: invalid_argument: url: ")
        assert err.count("\n") == 1


def test_a_prefix_that_cannot_be_used_is_a_wrong_command_line(command):
    ended = command("ls", "triage", "--prefix", "{}")

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("fdstore: invalid_argument: prefix: ")


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["nonsense"],
        ["ls"],
        ["read", "p", "1", "--mode", "word"],
        ["read", "p", "1#P1", "--start", "1"],
        ["read", "p", "1", "--start", "0"],
        ["read", "p", "1", "--pages", "2-"],
        ["read", "p", "1", "--pages", "2", "--lines", "2"],
        ["read", "p", "1#P1", "--lines", "2"],
        ["put", "p", "f", "--page-size", "x"],
        ["tail", "p", "1", "-n", "many"],
    ],
)
def test_a_wrong_command_line_is_exit_code_2(command, args):
    ended = command(*args)

    assert ended.code == 2
    assert "Usage: " in ended.err


@pytest.mark.parametrize("args", [["ls", "triage"], ["put", "triage", "/dev/null"], ["ps"], ["status"]])
def test_an_unreachable_redis_is_reported_immediately_in_one_line(make_command, args):
    command = make_command(FDSTORE_URL=CLOSED_PORT_URL)

    began = time.monotonic()
    ended = command(*args)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fdstore: store_unavailable: Redis at redis://:***@127.0.0.1:1: ")
    assert ended.err.count("\n") == 1
    assert "secret" not in ended.err
    assert time.monotonic() - began < 8  # lost connections are given ten seconds


def test_ctrl_c_ends_a_command_with_130(command, store):
    with command.start("put", "triage", "-") as process:
        wait_until(lambda: store.processes() != [], 20)

        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err) == (130, b"", b"")


# --- the server


def test_the_server_starts_on_demand_and_keeps_its_data_over_down_and_up(fresh):
    before = fresh("status", "--json")
    fresh("put", "triage", "-", stdin=b"kept")
    running = decoded(fresh("status", "--json").out, dict)
    down = fresh("down")
    down_again = fresh("down", "--json")
    up = fresh("up", "--json")

    assert decoded(before.out, dict)["store"] is None
    assert decoded(before.out, dict)["server"]["running"] is False
    assert running["server"]["running"] is True
    assert {"trees": 1, "processes": 1, "live": 1, "contents": 1, "bytes": 4}.items() <= running[
        "store"
    ].items()
    assert [" ".join(line.split()) for line in down.lines] == ["worker was not running", "server stopped"]
    assert decoded(down_again.out, dict) == {
        "server": {"stopped": False},
        "worker": {"stopped": False},
    }
    server = msgspec.convert(decoded(up.out, dict)["server"], ServerStatus)
    assert (server.running, server.data_dir) == (True, str(fresh.data_dir))
    assert server.pid != running["server"]["pid"]
    assert fresh("cat", "triage", "1").raw == b"kept"


def test_status_prints_text_for_people(fresh, tmp_path):
    kept = {name: value for name, value in fresh.environment.items() if not name.startswith("ANTHROPIC_")}
    fresh.environment = kept | {"HOME": str(tmp_path)}
    stopped = fresh("status")
    fresh("up")
    running = fresh("status")

    assert stopped.lines[0].startswith("server  not running")
    assert not fresh.data_dir.joinpath("redis.log").exists() or "pid" in running.out
    names = [line.split()[0] for line in running.lines]
    expected = ["server", "url", "program", "data", "memory", "holds", "workers", "agents", "commands"]
    assert names == expected
    assert "not run: there is no key for the Messages API: set ANTHROPIC_API_KEY" in running.out
    assert "commands run " in running.out or "commands are off on this worker" in running.out
    assert "0 trees, 0 processes (0 not ended), 0 contents with 0 B of text" in running.out


def test_ten_concurrent_commands_start_one_server(fresh):
    started = [fresh.start("put", "triage", "-") for _ in range(10)]
    ended = [process.communicate(b"x", timeout=60) for process in started]

    assert [process.returncode for process in started] == [0] * 10
    assert {out.decode().strip() for out, _ in ended} == {f"fd:{number}" for number in range(1, 11)}
    assert fresh.data_dir.joinpath("redis.log").read_text().count("eady to accept connections") == 1


def test_status_with_a_url_describes_that_redis(make_command):
    with PrivateServer({"maxmemory": "100mb"}) as server:
        command = make_command(FDSTORE_URL=server.url)
        command("put", "triage", "-", stdin=b"text")

        people, programs = command("status"), command("status", "--json")

    assert people.lines[0].split()[:3] == ["store", "answers,", "Redis"]
    assert "append-only file OFF" in people.out
    store = decoded(programs.out, dict)["store"]
    assert (store["url"], store["maxmemory_bytes"], store["trees"]) == (server.url, 104857600, 1)
    assert decoded(programs.out, dict)["server"]["running"] is False


def test_prefixes_keep_stores_apart(command):
    command("put", "triage", "-", "--prefix", "elsewhere", stdin=b"x")

    assert command("ps", "--json").out == ""
    assert command("ls", "triage", "--prefix", "elsewhere", "--json").out != ""


# --- upkeep


def age(store, *trees):
    """Set the last use of these trees to years ago."""
    with redis.Redis.from_url(store.url) as client:
        for tree in trees:
            client.hset(f"{store.prefix}:{{{tree}}}", "used_at", "1000000000")
            client.zadd(f"{store.prefix}:trees", {tree: 0})


def test_gc_explains_what_it_removes_and_a_dry_run_removes_nothing(command, store):
    nothing = command("gc")
    kept = store.process("kept")
    old = store.process("old")
    kept.create("x")
    old.create("four")
    age(store, "old")

    dry = command("gc", "--dry-run")
    after_dry = [process.id for process in store.processes()]
    done = command("gc", "--json")

    assert nothing.out == "nothing to remove: no tree is past its retention\n"
    assert dry.lines[1].split("  ")[0] == "old"
    assert "would be removed" in dry.lines[1]
    assert "1 contents, 4 bytes" in dry.lines[1]
    assert after_dry == ["kept", "old"]
    assert decoded(done.out, dict) == {"tree": "old", "outcome": "gone", "detail": "1 contents, 4 bytes"}
    assert [process.id for process in store.processes()] == ["kept"]


def test_a_dry_run_of_gc_states_for_each_tree_the_action_and_the_reason(command, store):
    store.run(processes.create_child(store.process("busy").handle, [], state="ready"))
    old = store.process("old")
    old.create("four")
    old.create("漢字")
    store.process("used")
    age(store, "busy", "old")
    with redis.Redis.from_url(store.url) as client:
        client.zadd(f"{store.prefix}:trees", {"used": 0, "only-a-name": 0})

    people = command("gc", "--dry-run")
    for_programs = [decoded(line, dict) for line in command("gc", "--dry-run", "--json").lines]

    said = {line.split()[0]: " ".join(line.split()[1:]) for line in people.lines[1:]}
    assert people.lines[0].split() == ["TREE", "WHAT", "WHY"]
    assert said.pop("used").startswith("stays in use until 2")
    assert said == {
        "busy": "stays busy.1 has not ended",
        "old": "would be removed 2 contents, 10 bytes",
        "only-a-name": "would be removed only its name is left",
    }
    assert {item["tree"]: item["outcome"] for item in for_programs} == {
        "busy": "held",
        "old": "due",
        "used": "kept",
        "only-a-name": "gone",
    }
    assert sorted(tree.id for tree in store.trees()) == ["busy", "old", "used"]


def test_reading_by_command_counts_as_use_of_a_tree(command, store):
    a_second_in_days = 1 / 86_400
    store.process("triage", limits=TreeLimits(retention_days=20 * a_second_in_days)).create("x")
    made_at = store.tree("triage").used_at
    wait_until(lambda: time.time() - made_at > 0.3, 20)

    command("read", "triage", "1")

    assert store.tree("triage").used_at > made_at


def test_doctor_finds_nothing_wrong_with_a_fresh_installation(fresh):
    before = fresh("doctor")
    fresh("up")
    after = fresh("doctor", "--json")

    assert (before.code, before.err) == (0, "")
    assert all(line.startswith("ok ") for line in before.lines)
    assert "not running" in before.out
    findings = {finding["subject"]: finding for finding in (decoded(line, dict) for line in after.lines)}
    assert {"python", "package redis", "data directory", "store", "eviction", "durability"} <= set(findings)
    assert all(finding["ok"] for finding in findings.values())


def test_doctor_suggests_a_remedy_for_each_problem(make_command):
    with PrivateServer({"maxmemory-policy": "allkeys-lru"}) as server:
        ended = make_command(FDSTORE_URL=server.url)("doctor")

    assert ended.code == 1
    assert "PROBLEM  eviction: its maxmemory-policy is allkeys-lru" in ended.out
    assert "-> set it with: fdstore redis-cli CONFIG SET maxmemory-policy noeviction" in ended.out
    assert "PROBLEM  durability: the append-only file is off" in ended.out


def test_doctor_reports_an_unreachable_redis(make_command):
    ended = make_command(FDSTORE_URL=CLOSED_PORT_URL)("doctor")

    assert ended.code == 1
    assert "PROBLEM  store: Redis at redis://:***@127.0.0.1:1: " in ended.out


def test_an_unsafe_redis_is_refused_before_anything_is_created_and_the_remedy_is_named(make_command):
    with PrivateServer({"maxmemory-policy": "allkeys-lru"}) as server:
        ended = make_command(FDSTORE_URL=server.url)("put", "triage", "-", stdin=b"x")

    assert ended.code == 1
    assert ended.err.startswith("fdstore: unsafe_store: ")
    assert "CONFIG SET maxmemory-policy noeviction" in ended.err


# --- URLs with passwords


@pytest.fixture
def guarded_url() -> Iterator[str]:
    with PrivateServer({"requirepass": "topsecret"}) as server:
        yield server.url.replace("unix://", "unix://:topsecret@")


WARNED = "fdstore: warning: others on this machine can see the password in --url; "


def test_only_a_password_on_the_command_line_gives_a_warning(make_command, guarded_url):
    command = make_command()
    for words in (
        ["--url", guarded_url, "ps"],
        ["ps", "--url", guarded_url],
        ["ps", "--json", "--url", guarded_url],
    ):
        ended = command(*words)
        assert ended.code == 0
        assert ended.err.startswith(WARNED)
        assert ended.err.count("\n") == 1
        assert "topsecret" not in ended.err
    assert command("ps", "--url", guarded_url.replace(":topsecret@", "")).err.startswith(
        "fdstore: permission_error"
    )
    assert make_command(FDSTORE_URL=guarded_url)("ps") == (0, b"", "")


def test_a_url_is_read_from_a_file_that_only_its_owner_should_read(make_command, guarded_url, tmp_path):
    command = make_command()
    file = tmp_path / "url"
    file.write_text(f"{guarded_url}\n# the team's Redis\n")
    file.chmod(0o600)

    assert command("put", "triage", "-", "--url-file", file, stdin=b"kept").out == "fd:1\n"
    assert command("--url-file", "url", "cat", "triage", "1") == (0, b"kept", "")
    file.chmod(0o640)
    seen = command("cat", "triage", "1", "--url-file", file)
    assert (seen.code, seen.out) == (0, "kept")
    assert seen.err == (
        "fdstore: warning: others can read the password in the file of --url-file; chmod 600 it\n"
    )


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff"])
def test_a_file_without_a_url_is_a_usage_error(command, tmp_path, content):
    if content is not None:
        (tmp_path / "url").write_bytes(content)

    for words in (["--url-file", "url", "ps"], ["ps", "--url-file", "url"]):
        ended = command(*words)
        assert ended.code == 2
        assert "--url-file" in ended.err


@pytest.mark.parametrize(
    "words", [["--url", "{}", "worker"], ["--url-file", "url", "worker"], ["worker", "--url-file", "url"]]
)
def test_the_command_line_of_a_worker_does_not_contain_the_url(make_command, guarded_url, tmp_path, words):
    (tmp_path / "url").write_text(guarded_url)
    (tmp_path / "url").chmod(0o600)
    with make_command().start(*[word.format(guarded_url) for word in words]) as worker:
        assert any(b"ready: " in line for line in worker.stderr)
        command_line = Path(f"/proc/{worker.pid}/cmdline").read_bytes()
        worker.terminate()
        worker.communicate()

    assert b"fdstore_workers" in command_line
    assert b"topsecret" not in command_line


def test_the_background_worker_receives_its_store_in_the_environment(fresh):
    up = decoded(fresh("up", "--json").out, dict)

    process = Path(f"/proc/{up['worker']['pid']}")
    assert b"redis.sock" not in (process / "cmdline").read_bytes()
    assert f"FDSTORE_URL={up['server']['url']}".encode() in (process / "environ").read_bytes().split(b"\0")


# --- the terminal


def test_control_characters_are_escaped_on_a_terminal_and_raw_in_a_pipe(command, store):
    text = "\x1b]0;owned\x07\u202eabc\tkept\r\nend"
    store.process("triage").create(text, source="\x1b[31mred")
    escaped = "\\u{1b}]0;owned\\u{7}\\u{202e}abc\tkept\\u{d}\nend\n"

    for verb in ("read", "cat"):
        assert command.on_terminal(verb, "triage", "1").out == escaped
        assert command(verb, "triage", "1").raw == text.encode()
        assert command.on_terminal(verb, "triage", "1", "--raw").raw == text.encode() + b"\n"
    assert "\\u{1b}[31mred" in command("ls", "triage").out
    assert "\x1b" not in command.on_terminal("ls", "triage").out
    assert "\x1b" not in command("stat", "triage", "1").out
    assert "\x1b" not in command("ls", "\x1b[31m").err


def test_an_answer_a_reason_and_a_name_are_escaped_on_a_terminal(command, store, tmp_path):
    hostile = "\x1b[2J\x9b31m\u202efdstore: all is well"
    escaped = "\\u{1b}[2J\\u{9b}31m\\u{202e}fdstore: all is well"
    (tmp_path / "we\x1bird").mkdir()
    (tmp_path / "we\x1bird" / "agent.toml").write_text(
        '[model]\nname = "any"\n[prompt]\nsystem = "Go."\n[file_descriptor]\ndefault_page_size = 50\n'
    )
    with ScriptedModel([say(hostile), say(hostile), fail(400, message=f"no\n{hostile}")]) as model:
        command.environment |= model.environ
        shown = command.on_terminal("run", "we\x1bird/agent.toml", "-p", "go", "--name", "a")
        exact = command("run", "we\x1bird/agent.toml", "-p", "go", "--name", "b")
        failed = command("run", "we\x1bird/agent.toml", "-p", "go", "--name", "triage")

    assert (shown.out, exact.out) == (f"{escaped}\n", f"{hostile}\n")
    assert "warning: we\\u{1b}ird/agent.toml" in exact.err
    assert f"no\\u{{a}}{escaped}" in failed.err
    store.run(processes.cancel(store.prefix, store.process("other").id, hostile))
    for ended in (shown, exact, failed, command("attach", "triage"), command("attach", "other")):
        assert not set(ended.err) & set("\x1b\x9b\u202e")
    for verb in (["ps"], ["ps", "--json"], ["attach", "other", "--json"], ["doctor"]):
        assert not set(command.on_terminal(*verb).out) & set("\x1b\x9b\u202e")
    assert decoded(command.on_terminal("ps", "other", "--json").lines[0], dict)["reason"] == hostile


def test_a_refusal_of_a_worker_is_one_line_without_control_characters(command):
    ended = command("worker", "--url", "redis://\x1b[2J\nhost:0/[")

    assert ended.code == 2
    assert ended.err.startswith("fdstore: invalid_argument: ")
    assert ended.err.count("\n") == 1
    assert "\x1b" not in ended.err


def test_a_table_fits_the_terminal_and_is_complete_elsewhere(command, store):
    source = "\u6f22\u5b57" * 40
    store.process("triage").create("x", source=source)

    narrow = command.on_terminal("ls", "triage", columns=90)

    assert narrow.lines[1].endswith("...")
    assert len(narrow.lines[1].encode("utf-16-le")) // 2 < 90
    assert source in command("ls", "triage").out


def test_states_are_coloured_on_a_terminal_and_stored_text_is_not(command, store):
    proc = store.process("triage")
    proc.open_stream(source="\x1b[31mred").fail("signal 9")
    plain = {verb: command.on_terminal(*verb.split()) for verb in ("ls triage", "ps", "doctor")}
    del command.environment["NO_COLOR"]
    ours = re.compile("\x1b\\[[0-9;]*m")

    for verb, ended in plain.items():
        shown = command.on_terminal(*verb.split())

        assert "\x1b" not in ended.out
        assert ours.search(shown.out)
        assert [line.split()[:2] for line in ours.sub("", shown.out).splitlines()] == (
            [line.split()[:2] for line in ended.lines]
        )
        assert ours.search(command(*verb.split()).out) is None
    assert "\x1b[31mbroken" in command.on_terminal("ls", "triage").out
    assert "\\u{1b}[31mred" in command.on_terminal("stat", "triage", "1").out


def test_a_long_put_shows_its_progress_on_a_terminal(command):
    terminal, theirs = os.openpty()
    with command.start("put", "triage", "-", stderr=theirs) as process:
        os.close(theirs)
        os.set_blocking(terminal, False)
        seen = b""

        def shown() -> bool:
            nonlocal seen
            process.stdin.write(b"x" * 1_000_000)
            try:
                seen += os.read(terminal, 4096)
            except BlockingIOError:
                return False
            return b"MB/s" in seen

        wait_until(shown, 30)
        out, _ = process.communicate(timeout=30)
    os.close(terminal)

    assert (process.returncode, out) == (0, b"fd:1\n")


# --- help


def test_help_names_every_verb_and_imports_nothing_slow(command):
    with Child(
        [sys.executable, "-X", "importtime", "-m", "fdstore", "--help"],
        env=command.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        out, trace = process.communicate(timeout=30)

    listed = {line.split()[0] for line in out.decode().split("\n") if line.startswith("  ") and line.split()}
    assert {name for section in VERBS.values() for name in section} <= listed
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in trace.decode().split("\n")}
    assert "click" in imported
    assert imported.isdisjoint({"redis", "celery", "anthropic", "msgspec", "asyncio"})


@pytest.mark.parametrize("name", HERE)
def test_the_help_of_a_verb_names_its_options(command, name):
    ended = command(name, "--help")

    assert ended.code == 0
    assert ended.lines[2].strip()
    for parameter in load_verb(name).params:
        for option in parameter.opts:
            assert option.startswith("-") is False or option in ended.out
    assert {"--url", "--prefix", "--help"} <= set(ended.out.replace(",", " ").split())


def test_version_prints_the_version_of_the_package(command):
    assert command("--version").out == f"fdstore {fdstore.__version__}\n"


# --- redis-cli


def test_redis_cli_connects_to_the_store(fresh):
    fresh("put", "triage", "-", stdin=b"kept\n")

    page = fresh("redis-cli", "--raw", "HGET", "fdstore:{triage}:triage:fd:1:pages", "1")
    table = fresh("redis-cli", "HGETALL", "fdstore:{triage}:triage:fds")
    typed = fresh("redis-cli", stdin=b"TYPE fdstore:{triage}\n")

    assert (page.code, page.out) == (0, "kept\n\n")
    assert table.lines == ["fd:1", "triage/1"]
    assert typed.out == "hash\n"


def test_redis_cli_receives_the_password_without_a_command_line_argument(make_command, guarded_url, tmp_path):
    (tmp_path / "url").write_text(guarded_url)
    (tmp_path / "url").chmod(0o600)
    command = make_command()

    with command.start("--url-file", "url", "redis-cli") as asking:
        asking.stdin.write(b"PING\n")
        asking.stdin.flush()
        pong = asking.stdout.readline()
        command_line = Path(f"/proc/{asking.pid}/cmdline").read_bytes()
        asking.communicate(timeout=20)

    assert pong == b"PONG\n"
    assert b"redis-cli" in command_line
    assert b"topsecret" not in command_line


def test_status_names_the_program_of_the_embedded_server(fresh):
    fresh("up")

    [program] = [line.split()[1] for line in fresh("status").lines if line.startswith("program")]

    assert os.access(program, os.X_OK)
    assert decoded(fresh("status", "--json").out, dict)["server"]["program"] == program
