"""Folders: which files of them are taken, what they are called, and how many names are left out."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shlex
import socket
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument, TargetMissing
from fdstore.files.folders import Patterns, walk
from fdstore.files.members import Choice, Members, find_members
from fdstore.files.unpacking import FORMATS
from fdstore.text.names import MAX_KEY_BYTES, escape_key, name_id
from tests.unit.files.packing import tar_of, zip_of

NONE = Patterns([])


def patterns(*lines: str) -> Patterns:
    return Patterns(lines)


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name}\n")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder `t` in the current directory, outside of git."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").mkdir()
    return tmp_path / "t"


def found(
    *paths: str,
    include: Patterns = NONE,
    exclude: Patterns = NONE,
    prefix: str = "",
    unpack: bool = True,
    stdin: bytes = b"",
) -> Members:
    piped = io.BytesIO(stdin)
    read, write = os.pipe()
    with os.fdopen(write, "wb") as out:
        out.write(piped.read())
    choice = Choice(include, exclude, prefix, unpack)
    with os.fdopen(read, "rb") as pipe, find_members(paths, choice, lambda: nullcontext(pipe)) as members:
        for each in members.members:
            with each.open() as file:
                assert file.read(1) is not None
        return members


def keys(*paths: str, **options: object) -> list[str | None]:
    return [each.key for each in found(*paths, **options).members]  # type: ignore[arg-type]


def test_the_names_of_a_folder_begin_with_it_unless_its_inside_was_named(tree: Path) -> None:
    fill(tree, "a/b.log", "c")

    assert keys("t") == ["t/c", "t/a/b.log"]
    assert keys(str(tree)) == ["t/c", "t/a/b.log"]
    assert keys("t/a/../../t") == ["t/c", "t/a/b.log"]
    assert keys("t/") == keys("t/.") == ["c", "a/b.log"]
    os.chdir(tree / "a")
    assert keys(".") == ["b.log"]
    assert keys("..") == ["c", "a/b.log"]
    assert keys("../../t", prefix="x/") == ["x/t/c", "x/t/a/b.log"]


def test_a_file_that_is_named_gets_the_next_number_and_with_a_prefix_a_name(tree: Path) -> None:
    fill(tree, ".env", "a#L3", "name:x")

    assert keys("t/.env", "t/a#L3") == [None, None]
    assert keys("t/.env", "t/a#L3", prefix="p/") == ["p/.env", "p/a\\x23L3"]
    assert keys("t/name:x", prefix="p") == ["pname:x"]
    assert keys("-", stdin=b"x") == [None]
    assert keys("-", stdin=b"x", prefix="p/") == ["p/stdin"]


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.log.gz", gzip.compress),
        ("a.log.bz2", bz2.compress),
        ("a.log.xz", lzma.compress),
        ("a.log", gzip.compress),
        ("a.log.GZ", gzip.compress),
    ],
)
def test_a_compressed_file_has_its_name_without_the_suffix(
    tree: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    (tree / name).write_bytes(pack(b"line\n" * 100_000))

    [named], [inside] = found(f"t/{name}").members, found("t").members

    assert (named.key, named.size, named.kind) == ("a.log", 500_000, "text")
    assert (inside.key, inside.source) == ("t/a.log", name)
    assert keys("t", unpack=False) == [f"t/{name}"]


ZSTD = bytes.fromhex("28b52ffd04585d0000286c696e650a0100d88a16b9bcaa65")
"""Three lines, as `zstd` packs them."""


def test_zstandard_is_unpacked_where_the_interpreter_can_and_else_kept_as_it_is(tree: Path) -> None:
    (tree / "a.log.zst").write_bytes(ZSTD)
    (tree / "b.log.zst").write_bytes(ZSTD * 2)

    sizes = {each.key: each.size for each in found("t/").members}

    if FORMATS["application/zstd"].begin is None:
        assert sizes == {"a.log.zst": len(ZSTD), "b.log.zst": 2 * len(ZSTD)}
    else:
        assert sizes == {"a.log": 15, "b.log": 30}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.tar", tar_of(("a/b", b"1"), ("c", b"\xff"))),
        ("x.tgz", tar_of(("./a/b", b"1"), ("c", b"\xff"), mode="w:gz")),
        ("x.tar.bz2", tar_of(("a/b", b"1"), ("c", b"\xff"), mode="w:bz2")),
        ("x.txz", tar_of(("a/b", b"1"), ("c", b"\xff"), mode="w:xz")),
        ("x.zip", zip_of({"a/b": b"1", "c": b"\xff"})),
        ("no suffix", zip_of({"a/b": b"1", "c": b"\xff"})),
    ],
)
def test_the_members_of_an_archive_stand_below_its_name(tree: Path, name: str, data: bytes) -> None:
    (tree / name).write_bytes(data)

    named = found(f"t/{name}").members

    assert [(each.key, each.size, each.kind) for each in named] == [
        (f"{name}/a/b", 1, "text"),
        (f"{name}/c", 1, "bytes"),
    ]
    assert keys("t") == [f"t/{name}/a/b", f"t/{name}/c"]
    assert keys("-", stdin=data) == ["stdin/a/b", "stdin/c"]
    assert keys(f"t/{name}", exclude=patterns("c")) == [f"{name}/a/b"]


def test_what_is_packed_in_a_packed_file_and_other_documents_stay_as_they_are(tree: Path) -> None:
    inner = zip_of({"x": b"1"})
    (tree / "outer.tar").write_bytes(tar_of(("in.zip", inner), ("in.gz", gzip.compress(b"1"))))
    (tree / "in.zip.gz").write_bytes(gzip.compress(inner))
    (tree / "drawing.vsdx").write_bytes(zip_of({"[Content_Types].xml": b"", "visio/document.xml": b""}))
    (tree / "letter.odt").write_bytes(
        zip_of({"mimetype": b"application/vnd.oasis.opendocument.text", "x": b""})
    )

    assert sorted(map(str, keys("t"))) == [
        *("t/drawing.vsdx", "t/in.zip", "t/letter.odt", "t/outer.tar/in.gz", "t/outer.tar/in.zip")
    ]


def test_two_contents_for_one_name_are_an_error(tree: Path) -> None:
    fill(tree, "one/logs/a", "two/logs/a", "logs/app.log")
    (tree / "logs" / "app.log.gz").write_bytes(gzip.compress(b"1"))

    with pytest.raises(InvalidArgument, match="'t/two/logs/a' would be name:logs/a too"):
        found("t/one/logs", "t/two/logs")
    with pytest.raises(InvalidArgument, match=r"would be name:t/logs/app\.log too; leave one of them out"):
        found("t")


@pytest.mark.parametrize("name", ["app.log", "a[1]*?.log", "!b", "#c", " d ", "e\\f"])
def test_the_error_for_two_contents_of_one_name_has_the_options_that_leave_one_out(
    tree: Path, name: str
) -> None:
    fill(tree, f"x/{name}", name)
    (tree / f"{name}.gz").write_bytes(gzip.compress(b"1"))
    (tree / "in").mkdir()
    (tree / "in" / "report.txt").write_bytes(tar_of(("a/report.pdf", b"1")))

    with pytest.raises(InvalidArgument) as raised:
        found("t")

    options = shlex.split(str(raised.value).rpartition("leave one of them out: ")[2].replace(", or", ""))
    assert (options[0], options[2], len(options)) == ("--exclude", "--exclude", 4)
    for left_out, kept in ((options[1], f"t/{name}.gz"), (options[3], f"t/{name}")):
        with find_members(["t"], Choice(NONE, patterns(left_out)), io.BytesIO) as members:
            assert kept in [each.shown for each in members.members]
            assert {escape_key(f"t/{name}"), escape_key(f"t/x/{name}")} <= {
                each.key for each in members.members
            }


def test_hidden_names_links_and_special_files_are_left_out_and_counted(tree: Path) -> None:
    fill(tree, "a", ".hidden/x", ".env", "sub/b")
    (tree / "link").symlink_to("a")
    (tree / "folder link").symlink_to("sub")
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        os.chdir(tree)
        bound.bind("socket")
        members = found("../t")

    assert [each.key for each in members.members] == ["t/a", "t/sub/b"]
    assert members.left_out == {"hidden": 2, "link": 2, "special file": 2}


def test_include_wins_over_everything_but_links(tree: Path) -> None:
    fill(tree, ".github/ci.yml", ".git/config", "build/x.log", "build/y", "a.log")
    (tree / ".gitignore").write_text("build/\n")
    (tree / "link.yml").symlink_to("a.log")

    assert keys("t/") == ["a.log"]
    assert keys("t/", include=patterns("*.yml")) == ["a.log", ".github/ci.yml"]
    assert keys("t/", include=patterns(".github/")) == ["a.log", ".github/ci.yml"]
    assert keys("t/", exclude=patterns("*"), include=patterns("*.log")) == ["a.log", "build/x.log"]
    assert found("t/", exclude=patterns("*.log"), include=patterns("build/y")).left_out == {
        "hidden": 3,
        "by --exclude": 1,
        "by .gitignore": 1,
        "link": 1,
    }


def test_of_a_folder_whose_files_were_taken_only_the_rest_is_left_out(tree: Path) -> None:
    fill(tree, "a/b.log", "a/deep/c.log", "a/deep/d.txt", "a/no/e.txt", "none/f.txt", "none/g/h.txt", "i.txt")
    (tree / "a" / "link.log").symlink_to("b.log")

    logs = found("t/", exclude=patterns("*"), include=patterns("*.log"))
    everything = found("t/", exclude=patterns("a", "none"), include=patterns("*.log", "*.txt"))

    assert [each.key for each in logs.members] == ["a/b.log", "a/deep/c.log"]
    # a/deep/d.txt, a/no, none, i.txt
    assert logs.left_out == {"by --exclude": 4, "link": 1}
    assert everything.left_out == {"link": 1}


def taken(folder: Path) -> list[str]:
    return sorted(each.below for each in walk(str(folder), NONE, NONE) if hasattr(each, "path"))


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ({"": "*.log\n!keep.log\n"}, ["a/b/x", "a/keep.log", "x"]),
        ({"": "/x\n"}, ["a/b/x", "a/keep.log", "a/y.log", "y.log"]),
        ({"": "x/\n# comment\n\n"}, ["a/b/x", "a/keep.log", "a/y.log", "x", "y.log"]),
        ({"": "a/*\n!a/keep.log\n"}, ["a/keep.log", "x", "y.log"]),
        ({"": "a/\n!a/keep.log\n"}, ["x", "y.log"]),
        ({"": "**/b\n"}, ["a/keep.log", "a/y.log", "x", "y.log"]),
        ({"": "a/**\n"}, ["x", "y.log"]),
        ({"": "*\n!a/\n"}, []),
        ({"": "*.log\n", "a": "!y.log\n"}, ["a/b/x", "a/y.log", "x"]),
        ({"a": "b\n/y.log\r\n"}, ["a/keep.log", "x", "y.log"]),
        ({"": "!\n\\\n["}, ["a/b/x", "a/keep.log", "a/y.log", "x", "y.log"]),
    ],
)
@pytest.mark.parametrize("in_git", [False, True])
def test_gitignore_files_count_as_in_git(
    tree: Path, rules: dict[str, str], left: list[str], in_git: bool
) -> None:
    fill(tree, "x", "y.log", "a/y.log", "a/keep.log", "a/b/x")
    for folder, text in rules.items():
        (tree / folder / ".gitignore").write_text(text, newline="")
    if in_git:
        (tree / ".git").mkdir()

    assert taken(tree) == left


def test_in_a_working_tree_the_files_above_the_folder_count_unless_they_leave_it_out(tree: Path) -> None:
    fill(tree, "sub/inner/a.log", "sub/inner/b", "sub/inner/c", "build/inner/d", "build/inner/a.log")
    (tree / ".gitignore").write_text("*.log\nbuild/\n")
    (tree / "sub" / ".gitignore").write_text("/inner/c\n")

    assert taken(tree / "sub" / "inner") == ["a.log", "b", "c"]
    (tree / ".git" / "info").mkdir(parents=True)
    assert taken(tree / "sub" / "inner") == ["b"]
    assert taken(tree / "build" / "inner") == ["a.log", "d"]
    (tree / ".git" / "info" / "exclude").write_text("/sub/inner/b\n")
    assert taken(tree / "sub" / "inner") == []


def test_names_that_are_not_utf8_are_matched_and_escaped(tree: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9.log"))).write_text("x")
    fill(tree, "line\nbreak")

    assert keys("t/") == ["caf\\xe9.log", "line\\x0abreak"] or keys("t/") == [
        "line\\x0abreak",
        "caf\\xe9.log",
    ]
    assert keys("t/", exclude=patterns("*.log")) == ["line\\x0abreak"]


def test_what_cannot_be_a_name_is_left_out_with_the_reason(tree: Path) -> None:
    deep = "/".join(["x" * 200] * 5)
    fill(tree, "a", f"{deep}/b")

    members = found("t", prefix="p" * 30)

    assert [each.key for each in members.members] == ["p" * 30 + "t/a"]
    assert "its name has 103" in members.odd[0].problem


def test_a_folder_without_files_and_a_path_that_is_not_there_are_errors(tree: Path) -> None:
    fill(tree, ".a", ".b")
    (tree / "x.zip").write_bytes(zip_of({}))

    for path in ("t", "t/x.zip"):
        with pytest.raises(InvalidArgument, match=f"^{path}: there is nothing to store in it"):
            found(path)
    with pytest.raises(InvalidArgument, match="; 3 names left out: 2 hidden, 1 by --exclude"):
        found("t", exclude=patterns("x.zip"))
    with pytest.raises(TargetMissing):
        found("nowhere")


@given(
    st.text(min_size=1, max_size=30)
    | st.from_regex(r"(name:)?[a#]*#[LPC][0-9]{1,3}(-[0-9]*)?", fullmatch=True)
)
def test_every_path_has_a_key_and_one_that_can_be_a_key_is_its_own(path: str) -> None:
    key = escape_key(path)

    assert name_id(key) == f"name:{key}"
    assert len(key.encode()) <= MAX_KEY_BYTES
    assert escape_key(key) == key
    try:
        name_id(path)
    except InvalidArgument:
        assert key != path
    else:
        assert key == path


@given(st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name))
def test_every_file_name_has_a_key(name: bytes) -> None:
    key = escape_key(os.fsdecode(name))

    assert name_id(key)
    assert key.isprintable() or not key.isascii()
