"""`spawn`: the children that it starts, what they are given, and what it refuses."""

from __future__ import annotations

import gzip
import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore import Toolset
from fdstore.agents.loop.first_prompt import first_messages
from fdstore.agents.loop.program_loader import load
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.model.records import TreeLimits
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started
from fdstore.tools.process_task import SpawnTask
from fdstore.tools.toolbox import Toolbox
from tests.elements import elements, only
from tests.on_redis.conformance.calling import LINES, context_of, schema_of, show_element, started
from tests.unit.files.documents_made import DOCUMENTS
from tests.unit.files.packing import zip_of


def test_the_description_of_spawn_lists_the_linked_programs(spawning: Toolset) -> None:
    [definition] = [each for each in spawning.definitions if each["name"] == "spawn"]

    assert definition["description"].endswith("Programs:\n- reader\n- adder: adds")


def test_preloads_of_descriptors_are_in_the_schema_only_when_descriptors_are_on(
    proc: Process, programs: dict[str, Path], spawning: Toolset
) -> None:
    without = Toolset(proc, enabled=["spawn"], programs=programs)

    assert "additional_preload_fds" in schema_of(spawning, "spawn")["properties"]
    assert "additional_preload_fds" not in schema_of(without, "spawn")["properties"]
    error = show_element(without, "spawn", program_name="adder", query="add", additional_preload_fds=["fd:1"])
    assert "there are no descriptors; put the text in query" in error.message


def test_spawn_needs_programs_to_start(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match="programs: spawn is enabled, so name the programs"):
        Toolset(proc, enabled=["spawn"])


def test_a_background_child_without_a_way_to_read_it_is_not_started(
    proc: Process, programs: dict[str, Path], store: Store
) -> None:
    alone = Toolset(proc, enabled=["spawn"], programs=programs)

    assert "background" not in schema_of(alone, "spawn")["properties"]
    error = show_element(alone, "spawn", program_name="adder", query="add", background=True)

    assert error.message == "background: there is no tool to read or wait for it with; leave it out"
    assert len(store.tree("triage").members) == 1


def test_a_child_holds_shared_descriptors_under_the_same_ids(
    store: Store, proc: Process, context: Context
) -> None:
    for text in ("one", "two", "three"):
        proc.create(text)

    child = started(
        store, context, program_name="adder", query="add", additional_preload_fds=["fd:3", 1, "fd-3"]
    )

    assert [(held.fd, child.read(held.fd).text) for held in child.list()] == [
        ("fd:1", "one"),
        ("fd:3", "three"),
    ]


def test_a_shared_selector_is_passed_as_an_extraction_of_that_part(
    store: Store, proc: Process, context: Context
) -> None:
    proc.create(LINES)

    child = started(store, context, program_name="adder", query="add", additional_preload_fds=["fd:1#L2-3"])

    assert [held.fd for held in child.list()] == ["fd:2"]
    assert child.read("fd:2").text == proc.read("fd:2").text == "line 2\nline 3\n"


def test_preloaded_files_are_read_by_the_parent_and_passed_as_descriptors(
    store: Store, proc: Process, context: Context, tmp_path: Path
) -> None:
    (tmp_path / "data.bin").write_bytes(b"caf\xe9\n")

    child = started(
        store, context, program_name="reader", query="read", additional_preload_files=["data.bin"]
    )

    assert [(held.fd, held.source, child.read(held.fd).text) for held in child.list()] == [
        ("fd:1", "notes.txt", "its own notes"),
        ("fd:2", "data.bin", "caf\\xe9\n"),
    ]


def test_a_preloaded_archive_is_passed_as_bytes_and_a_compressed_file_as_what_it_holds(
    store: Store, proc: Process, context: Context, tmp_path: Path
) -> None:
    archive = zip_of({"lines": LINES.encode()})
    (tmp_path / "lines.zip").write_bytes(archive)
    (tmp_path / "lines.log.gz").write_bytes(gzip.compress(LINES.encode()))
    files = ["lines.zip", "lines.log.gz"]

    child = started(store, context, program_name="reader", query="read", additional_preload_files=files)

    assert child.stat("fd:2").media_type == "application/zip"
    assert child.read_bytes("fd:2") == archive
    assert child.stat("fd:3").source == "lines.log"
    assert child.read("fd:3", read_all=True).text == LINES


def test_a_preloaded_document_is_passed_with_its_text(
    store: Store, proc: Process, context: Context, tmp_path: Path
) -> None:
    (tmp_path / "figures.xlsx").write_bytes(DOCUMENTS[".xlsx"])
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.7\n\xff")
    files = ["figures.xlsx", "damaged.pdf"]

    child = started(store, context, program_name="reader", query="read", additional_preload_files=files)

    document, text, damaged = (child.stat(f"fd:{number}") for number in (2, 3, 4))
    assert (document.kind, document.source) == ("bytes", "figures.xlsx")
    assert (text.source, text.media_type) == ("figures.xlsx.txt", "text/csv")
    assert child.read("fd:3").text == "[sheet Totals]\none,two\n"
    assert (damaged.kind, damaged.source) == ("bytes", "damaged.pdf")


def test_a_compressed_preload_that_is_a_bomb_starts_no_child(
    store: Store, proc: Process, context: Context, tmp_path: Path
) -> None:
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(bytes(8 << 20)))

    arguments = {"program_name": "reader", "query": "read", "additional_preload_files": ["zeros.gz"]}
    refused = store.run(Toolbox(context).start("spawn", arguments, None))

    assert only(refused.content)["type"] == "too_large"
    assert "200 times its own size; unpack it yourself" in only(refused.content).message
    assert len(store.processes()) == 1


@pytest.mark.parametrize(
    "path",
    [
        "../plain.toml",
        "/etc/passwd",
        "link",
        "no/such",
        "",
        "\0",
        "a" * 300,
        "fifo",
        "socket",
        ".env",
        ".git/config",
        "sub/.ssh/key",
    ],
)
def test_a_model_can_preload_no_file_outside(
    context: Context, store: Store, tmp_path: Path, path: str
) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    for folder in (".git", "sub/.ssh"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (".env", ".git/config", "sub/.ssh/key"):
        (tmp_path / name).write_text("secret")
    with socket.socket(socket.AF_UNIX) as listening, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        listening.bind("socket")

    result = store.run(
        Toolbox(context).start(
            "spawn", {"program_name": "adder", "query": "q", "additional_preload_files": [path]}
        )
    )

    assert not isinstance(result, Started)
    assert only(result.content)["type"] in {"permission_error", "file_not_found"}
    assert len(store.tree("triage").members) == 1


def test_small_preloads_are_shown_whole_and_large_ones_by_head_and_tail(
    store: Store, proc: Process, context: Context, programs: dict[str, Path]
) -> None:
    proc.create("small")
    proc.create(LINES * 20)
    child = started(
        store, context, program_name="reader", query="read", additional_preload_fds=["fd:2", "fd:1"]
    )
    bundle = load(programs["reader"])
    toolbox = Toolbox(context_of(child, ["read_fd"]))

    brief = SpawnTask(query="read", preload=["fd:2", "fd:1", "fd:3"])
    start = store.run(first_messages(toolbox, bundle.programs[bundle.root], brief))

    said, _, preloaded = start.system.partition("# Preloaded texts\n")
    assert said.startswith("You read.\n\n# Large texts\n")
    large, small, own = elements(preloaded)
    assert (large.name, large["fd"], large["total_lines"]) == ("fd_result", "fd:2", "2000")
    assert (small.name, small["fd"], small.body) == ("fd_content", "fd:1", "small")
    assert (own.name, own["fd"], own.body) == ("fd_content", "fd:3", "its own notes")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"program_name": "none"}, "unknown_program", "there is no program 'none'; there are: reader, adder"),
        ({"query": " \n"}, "invalid_argument", "query: must say what is to be done"),
        ({"query": "\udcff"}, "invalid_argument", "query: it holds the lone surrogate"),
        ({"additional_preload_fds": ["fd:9"]}, "not_found", "fd:9 does not exist"),
        ({"additional_preload_fds": ["fd:1#L9"]}, "invalid_range", "fd:1 has lines 1-1"),
        ({"additional_preload_fds": "fd:1"}, "invalid_argument", "additional_preload_fds: Expected `array`"),
        ({"additional_preload_fds": ["fd:1"] * 101}, "invalid_argument", "at most 100 preloads are taken"),
    ],
)
def test_a_refused_spawn_creates_nothing(
    store: Store, proc: Process, context: Context, arguments: dict[str, Any], kind: str, message: str
) -> None:
    proc.create("text")

    result = store.run(Toolbox(context).start("spawn", {"program_name": "adder", "query": "q", **arguments}))

    assert not isinstance(result, Started)
    error = only(result.content)
    assert (error["type"], message in error.message) == (kind, True)
    assert (len(store.tree("triage").members), store.tree("triage").fds) == (1, 1)


def test_exceeding_a_tree_limit_is_an_error_result(store: Store, context: Context) -> None:
    root = store.process("small", limits=TreeLimits(tree_live=1, tree_bytes=10, tree_fds=1))
    limited = Toolset(root, enabled=["write_fd"])
    toolbox = Toolbox(msgspec.structs.replace(context, handle=root.handle))

    spawned = store.run(toolbox.start("spawn", {"program_name": "adder", "query": "q"}))
    assert not isinstance(spawned, Started)
    assert only(spawned.content)["type"] == "spawn_limit"
    assert show_element(limited, "write_fd", data="x" * 11)["type"] == "quota_exceeded"
    assert show_element(limited, "write_fd", data="x")["fd"] == "fd:1"
    assert show_element(limited, "write_fd", data="x")["type"] == "quota_exceeded"
