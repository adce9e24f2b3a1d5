"""The verbs that store, show and remove texts, as people and scripts use them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from fdstore.model.records import Descriptor, Export, ProcessRecord, Slice
from fdstore.store.contents import contents
from fdstore.store.processes import processes
from tests.acceptance.conftest import peak_bytes
from tests.waiting import PATIENCE_S

# --- storing and showing


def test_a_file_is_put_listed_and_read_back(command, tmp_path):
    (tmp_path / "build.log").write_bytes(b"one\ntwo\nthree\n")

    made = command("put", "triage", "build.log", "--page-size", "8")
    listed = command("ls", "triage")
    read = command("read", "triage", "fd:1", "--start", "2")

    assert (made.code, made.out, made.err) == (0, "fd:1\n", "")
    assert " ".join(listed.lines[0].split()) == "FD STATE CHARS SIZE LINES PAGES CREATED PRODUCER TYPE SOURCE"
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
    with command.at_terminal("put", "triage", "-", streams=("stdin",)) as (putting, terminal):
        terminal.type("typed\nna\u00efve\n\x04")
        out, _ = putting.communicate(timeout=PATIENCE_S)
    terminal.close()

    assert out == b"fd:1\n"
    assert store.process("triage").read("fd:1").text == "typed\nna\u00efve\n"


def test_stat_names_the_source_of_an_extraction(command, proc):
    proc.create("one\ntwo\nthree\n", source="web")
    proc.extract("fd:1#L2-3")

    ended = command("stat", "triage", "2")

    shown = dict(line.split(maxsplit=1) for line in ended.lines)
    assert shown["fd"] == "fd:2"
    assert shown["lines"] == "2"
    assert "cut from  lines 2-3, characters 5-14 of fd:1 (triage/1)" in ended.out
    assert shown["held"] == "by   triage (open)"


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
def test_a_part_is_read_by_selector_or_by_options(command, store, proc, asked):
    proc.create("one\ntwo\nthree\n")
    store.run(contents.create(proc.handle, "one\ntwo\nthree\n", "answer", name="ref:plan"))

    ended = command("read", "triage", *asked)

    assert (ended.code, ended.raw) == (0, b"two\nthree\n")


def test_read_all_prints_the_complete_text(command, proc):
    proc.create("a\nb\nc", page_size=2)

    assert command("read", "triage", "1", "--all").raw == b"a\nb\nc"
    assert command("read", "triage", "1").raw == b"a\n"


@pytest.mark.thorough("its size takes long")
def test_a_large_content_is_printed_exactly_and_in_bounded_memory(command, tmp_path):
    text = "".join(f"line {number}: na\u00efve \u6f22\u5b57\n" for number in range(1_500_000)).encode()
    (tmp_path / "large").write_bytes(text)
    command("put", "triage", "large")

    with command.start("cat", "triage", "1", fresh=True) as process:
        most = process.stdout.read(30_000_000)
        peak = peak_bytes(process.pid)
        rest = process.stdout.read()

    assert process.returncode == 0
    assert most + rest == text
    assert len(text) > 35_000_000
    assert peak < 64_000_000  # Python and its modules take 30


def test_cat_prints_the_part_a_selector_names(command, proc):
    proc.create("one\ntwo\nthree\n", page_size=4)

    assert command("cat", "triage", "fd:1#L2-2").raw == b"two\n"
    pieces = command("cat", "triage", "fd:1", "--json").documents
    assert "".join(piece["text"] for piece in pieces) == "one\ntwo\nthree\n"


def test_cat_ends_silently_when_its_reader_closes_the_pipe(command, proc):
    proc.create("x" * 5_000_000)

    with command.start("cat", "triage", "1") as process:
        process.stdout.read(10)
        process.stdout.close()
        err = process.stderr.read()

    assert (process.returncode, err) == (141, b"")


FOLLOWING = [("questions", "-f"), ("tail", "-f", "triage", "1"), ("log", "-f", "triage.1"), ("ps", "--watch")]


@pytest.mark.parametrize("words", FOLLOWING, ids=lambda words: words[0])
def test_what_follows_ends_with_its_reader_though_it_has_nothing_to_write(command, store, proc, words):
    with proc.open_stream() as stream:
        stream.write("a line\n")
        child = proc.child()
        store.run(processes.launch(child.handle, '{"query": "wait"}'))

        with command.start(*words) as process:
            process.stdout.close()
            process.wait(PATIENCE_S)

        assert process.returncode == 141


def test_a_full_output_device_is_an_error(command, proc):
    proc.create("x" * 5_000)

    with Path("/dev/full").open("wb") as full, command.start("cat", "triage", "1", stdout=full) as process:
        err = process.stderr.read().decode()

    assert process.returncode == 1
    assert err.startswith("fdstore: write_error: standard output failed: no space left")


def test_export_writes_appends_or_refuses_as_requested(command, proc, tmp_path):
    proc.create("one\ntwo\n")

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


def test_run_refuses_a_name_that_is_taken(command, store, proc, tmp_path):
    (tmp_path / "agent.toml").write_text('[model]\nname = "any"\n[prompt]\nsystem = "You wait."\n')

    ended = command("run", "agent.toml", "-p", "go", "--name", "triage")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fdstore: invalid_argument: name: process triage exists already")
    assert [process.id for process in store.processes()] == ["triage"]


def test_rm_removes_what_it_can_and_reports_the_others_and_after_a_typo_nothing(command, proc):
    for text in "abc":
        proc.create(text)

    typo = command("rm", "triage", "1", "fd:x")
    ended = command("rm", "triage", "1", "fd:9", "fd-3")

    assert (typo.code, typo.out) == (1, "")
    assert (ended.code, ended.lines) == (1, ["closed fd:1", "closed fd:3"])
    assert ended.err == "fdstore: not_found: fd:9 does not exist; there are: fd:2, fd:3\n"
    assert [descriptor.fd for descriptor in proc.list()] == ["fd:2"]


def test_ps_draws_each_tree_with_ended_processes(command, store):
    root = store.process("triage")
    first = root.child()
    first.child()
    root.child().end()
    store.process("other")

    everything = command("ps", "--all")
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
    assert one.lines[-1].startswith("uses depth 3 of 8, live 3 of 64, processes 4 of 1,000, ")
    assert command("ps", "nope").err.startswith("fdstore: not_found: tree nope does not exist; there are: ")


def test_ls_names_the_verb_that_lists_all_processes(command):
    ended = command("ls", "triage", "--all")

    assert ended.code == 2
    assert "`fdstore ps --all` lists all processes" in ended.err


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

    made = msgspec.convert(put.document, Descriptor)
    assert msgspec.convert(listed.document, Descriptor) == made
    assert msgspec.convert(stat.document, Descriptor) == made
    assert stat.document["holders"] == [{"process": "triage", "state": "open", "fd": "fd:1"}]
    assert msgspec.convert(read.document, Slice).text == "one\n"
    assert msgspec.convert(exported.document, Export).char_count == 4
    assert msgspec.convert(processes.document, ProcessRecord).id == "triage"
    assert removed.document == {"fd": "fd:1", "closed": True}
    assert (nothing.code, nothing.out) == (0, "")


def test_errors_are_json_too_with_the_json_option(command):
    ended = command("ls", "nope", "--json")

    assert (ended.code, ended.out) == (1, "")
    error = msgspec.json.decode(ended.err)["error"]
    assert error["type"] == "not_found"
    assert "process nope does not exist" in error["message"]
