"""Packed files that were made to harm: what is left out, and what is refused before anything is stored."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from fdstore.errors import FDStoreError, InvalidArgument, TooLarge
from fdstore.files.folders import Patterns
from fdstore.files.members import Choice, Members, find_members
from fdstore.files.unpacking import UnpackLimits
from tests.unit.files.packing import (
    Make,
    Raw,
    deflated,
    in_base_256,
    plain,
    raw_zip,
    tar_entry,
    tar_header,
    tar_of,
    zip_of,
)

GOOD = ("good", b"good\n")
ZEROS = b"\0" * (4 << 20)
NONE = Patterns([])


def no_stdin() -> None:
    raise AssertionError("standard input was not named")


def found_in(path: Path, limits: UnpackLimits = UnpackLimits()) -> Members:  # noqa: B008
    return find_members([str(path)], Choice(NONE, NONE, limits=limits), no_stdin)  # type: ignore[arg-type]


def contents_of(members: Members) -> dict[str, bytes]:
    """Read all members, in order."""
    read = {}
    for each in members.members:
        with each.open() as file:
            read[str(each.key)] = b"".join(iter(lambda: file.read(1000), b""))
    return read


def sparse(size: int) -> bytes:
    """A file of this size without data, as GNU tar describes one."""
    info = tarfile.TarInfo("hole")
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "hole",
        "GNU.sparse.realsize": str(size),
    }
    body = f"1\n{size}\n0\n".encode().ljust(512, b"\0")
    info.size = len(body)
    return info.tobuf(tarfile.PAX_FORMAT) + body + b"\0" * 1024


ODD: dict[str, tuple[Make, str]] = {
    "absolute.tar": (lambda: tar_of(("/etc/passwd", b"x"), GOOD), "its name is absolute"),
    "up.tar": (lambda: tar_of(("../up", b"x"), GOOD), "its name holds '..'"),
    "middle.tar": (lambda: tar_of(("a/../../up", b"x"), GOOD), "its name holds '..'"),
    "dots.tar": (lambda: tar_of(("..", b"x"), GOOD), "its name holds '..'"),
    "nameless.tar": (lambda: tar_of(("./.", b"x"), GOOD), "it has no name"),
    "symlink.tar": (lambda: tar_of(tar_entry("l", tarfile.SYMTYPE, "/etc"), GOOD), "it is a link"),
    "hardlink.tar": (lambda: tar_of(GOOD, tar_entry("l", tarfile.LNKTYPE, "good")), "it is a link"),
    "character.tar": (lambda: tar_of(tar_entry("d", tarfile.CHRTYPE), GOOD), "it is a device"),
    "block.tar": (lambda: tar_of(tar_entry("d", tarfile.BLKTYPE), GOOD), "it is a device"),
    "fifo.tar": (lambda: tar_of(tar_entry("d", tarfile.FIFOTYPE), GOOD), "it is a FIFO"),
    "unknown.tar": (lambda: tar_of(tar_entry("d", b"Z"), GOOD), "it is of an unknown kind"),
    "after.tar": (lambda: tar_of(GOOD) + b"garbage", "7 bytes after its end that belong to nothing"),
    "after.tar.gz": (lambda: gzip.compress(tar_of(GOOD)) + b"garbage", "7 bytes after its end"),
    "within.tar.gz": (lambda: gzip.compress(tar_of(GOOD) + b"garbage"), "7 bytes after its end"),
    "second.tar": (lambda: tar_of(GOOD) + tar_of(("second", b"2")), "bytes after its end"),
    "absolute.zip": (lambda: zip_of([("/etc/passwd", b"x"), GOOD]), "its name is absolute"),
    "up.zip": (lambda: zip_of([("../up", b"x"), GOOD]), "its name holds '..'"),
    "symlink.zip": (lambda: raw_zip(plain("l", b"/etc", mode=0o120777), plain(*GOOD)), "it is a link"),
    "device.zip": (lambda: raw_zip(plain("d", b"", mode=0o020666), plain(*GOOD)), "it is a special file"),
    "encrypted.zip": (lambda: raw_zip(plain("e", b"x" * 20, flags=1), plain(*GOOD)), "it is encrypted"),
    "method.zip": (
        lambda: raw_zip(plain("m", b"x", method=14), plain(*GOOD)),
        "a method that is not known",
    ),
    "checksum.zip": (lambda: raw_zip(plain("c", b"x", crc=1), plain(*GOOD)), "its checksum is wrong"),
    "short.zip": (lambda: raw_zip(plain("s", b"x", size=9), plain(*GOOD)), "it has 1 bytes, and the archive"),
    "long.zip": (lambda: raw_zip(plain("l", b"xyz", size=1), plain(*GOOD)), "it has more bytes than the 1"),
    "broken.zip": (lambda: raw_zip(plain("b", b"\xff" * 9, method=8), plain(*GOOD)), "invalid"),
    "hidden bomb.zip": (
        lambda: raw_zip(Raw(b"z", deflated(ZEROS[:1000]), 5, 0, method=8), plain(*GOOD)),
        "it has more bytes than the 5 that the archive says",
    ),
    "elsewhere.zip": (
        lambda: raw_zip(plain(*GOOD), plain("e", b"", offset=10)),
        "it is not where the archive says",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_member_is_left_out_and_the_others_are_taken(tmp_path: Path, name: str) -> None:
    make, problem = ODD[name]
    (tmp_path / name).write_bytes(make())

    with found_in(tmp_path / name) as found:
        [odd] = found.odd

        assert problem in odd.problem
        assert contents_of(found) == {f"{name}/good": b"good\n"}


def test_what_follows_a_compressed_file_is_left_out_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(
        gzip.compress(b"one\n") + gzip.compress(b"two\n") + b"\0" * 9 + b"garbage"
    )

    with found_in(tmp_path / "a.gz") as found:
        assert [each.problem for each in found.odd] == ["7 bytes after its end that belong to nothing"]
        assert contents_of(found) == {"a": b"one\ntwo\n"}


SMALL = UnpackLimits(members=5, bytes=1 << 20, ratio=20, hint="raise --max-{name}")

BOMBS: dict[str, tuple[Make, str]] = {
    "zeros.gz": (lambda: gzip.compress(ZEROS), "raise --max-bytes"),
    "zeros.bz2": (lambda: bz2.compress(ZEROS), "raise --max-bytes"),
    "zeros.xz": (lambda: lzma.compress(ZEROS), "raise --max-bytes"),
    "zeros.tar.gz": (lambda: gzip.compress(tar_of(("z", ZEROS))), "raise --max-bytes"),
    "zeros.zip": (lambda: zip_of({"z": ZEROS}), "raise --max-bytes"),
    "promised.zip": (lambda: raw_zip(plain("p", b"x", size=0xFFFFFFF0)), "raise --max-bytes"),
    "many.tar": (
        lambda: tar_of(*((str(n), b"") for n in range(6))),
        "6 members, more than the limit of 5",
    ),
    "many.zip": (lambda: zip_of({str(n): b"" for n in range(6)}), "6 members, more than the limit of 5"),
    "huge.tar": (lambda: tar_header("h", b"77777777777") + bytes(512), "raise --max-bytes"),
    "sparse.tar": (lambda: sparse(1 << 40), "raise --max-bytes"),
    "sparse.tar.gz": (lambda: gzip.compress(sparse(1 << 62)), "raise --max-bytes"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_with_the_figures_and_the_option(tmp_path: Path, name: str) -> None:
    make, problem = BOMBS[name]
    (tmp_path / name).write_bytes(make())

    with pytest.raises(TooLarge, match=problem):
        found_in(tmp_path / name, SMALL)


@pytest.mark.parametrize("name", ["zeros.gz", "zeros.xz", "zeros.tar.gz", "zeros.zip"])
def test_a_ratio_counts_from_a_mebibyte_on(tmp_path: Path, name: str) -> None:
    limits = UnpackLimits(ratio=20, hint="raise --max-{name}")
    less = {"zeros.gz": gzip.compress(ZEROS[: 1 << 20]), "zeros.xz": lzma.compress(ZEROS[: 1 << 20])}
    (tmp_path / name).write_bytes(BOMBS[name][0]())
    (tmp_path / "small").write_bytes(less.get(name, less["zeros.gz"]))

    with pytest.raises(TooLarge, match="20 times its own size; raise --max-ratio"):
        found_in(tmp_path / name, limits)
    with found_in(tmp_path / "small", limits) as found:
        assert found.bytes == 1 << 20


def test_limits_are_of_all_packed_files_of_a_command_together(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.zip").write_bytes(zip_of({str(n): b"" for n in range(3)}))

    with pytest.raises(TooLarge, match="has 6 members"):
        found_in(tmp_path, SMALL)


DAMAGED: dict[str, tuple[Make, str]] = {
    "cut.gz": (lambda: gzip.compress(b"x" * 1000)[:-5], "it ends too soon"),
    "cut.bz2": (lambda: bz2.compress(b"x" * 1000)[:-5], "it ends too soon"),
    "cut.xz": (lambda: lzma.compress(b"x" * 1000)[:-5], "it ends too soon"),
    "head alone.gz": (lambda: gzip.compress(b"x")[:10], "it ends too soon"),
    "flipped.gz": (lambda: gzip.compress(b"x" * 1000)[:-8] + bytes(8), "incorrect data check"),
    "greedy.xz": (
        lambda: lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29, "preset": 0}]),
        "Memory usage limit",
    ),
    "cut.tar": (lambda: tar_of(("a", b"x" * 2000))[:1500], "unexpected end of data"),
    "cut.tar.gz": (lambda: gzip.compress(tar_of(("a", b"x" * 2000)))[:-20], "it ends too soon"),
    "cut within.tar.gz": (lambda: gzip.compress(tar_of(("a", b"x" * 2000))[:1500]), "unexpected end of data"),
    "negative.tar": (lambda: tar_header("n", in_base_256(-512)) + bytes(1024), "a size below 0"),
    "back.tar": (lambda: tar_of(GOOD)[:1024] + tar_header("n", in_base_256(-1536)) + bytes(1024), "below 0"),
    "long name.tar": (lambda: tar_header("././@LongLink", b"7777777777", b"L") + bytes(2048), "too long"),
    "negative name.tar": (lambda: tar_header("n", in_base_256(-1), b"L") + bytes(2048), "end of file header"),
    "long pax.tar": (lambda: tar_header("p", b"7777777777", b"x") + bytes(2048), "is too long"),
    "no directory.zip": (lambda: zip_of({"a": b"x"})[:-30], "not a zip file"),
    "cut.zip": (lambda: zip_of({"a": b"x" * 100})[:20], "not a zip file"),
    "overlapping.zip": (
        lambda: raw_zip(plain("a", b"x" * 60, packed_size=110), plain("b", b"x" * 60)),
        "members of it overlap",
    ),
    "twice the same.zip": (
        lambda: raw_zip(plain("a", b"x" * 60), plain("b", b"x" * 60, offset=0)),
        "members of it overlap",
    ),
    "past the end.zip": (lambda: raw_zip(plain("a", b"x", packed_size=5000)), "members of it overlap"),
    "names.zip": (
        lambda: raw_zip(plain("a", b"x", flags=0x800)._replace(name=b"\xff")),
        "can't decode",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_that_was_named_is_refused(tmp_path: Path, name: str) -> None:
    make, problem = DAMAGED[name]
    (tmp_path / name).write_bytes(make())

    with pytest.raises((InvalidArgument, TooLarge), match=problem):
        found_in(tmp_path / name)


def test_a_damaged_file_in_a_folder_is_left_out_and_the_others_are_taken(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"good\n")
    for name, (make, _) in DAMAGED.items():
        (tmp_path / name).write_bytes(make())

    with found_in(tmp_path) as found:
        assert contents_of(found) == {f"{tmp_path.name}/good": b"good\n"}
        assert len(found.odd) == len(DAMAGED)


@pytest.mark.parametrize(
    "data",
    [
        tar_of(("a", b"1"), ("a", b"2")),
        tar_of(("a", b"1"), ("./a", b"2")),
        tar_of(("a/b", b"1"), ("a//b", b"2")),
        zip_of([("a", b"1"), ("./a", b"2")]),
        tar_of(("a\n", b"1"), ("a\\x0a", b"2")),
    ],
)
def test_two_members_for_one_name_are_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)

    with pytest.raises(InvalidArgument, match=r"would be name:x/a.* too"):
        found_in(tmp_path / "x")


def test_a_file_that_changed_after_it_was_examined_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(tar_of(("a", b"x" * 5000), ("b", b"y" * 5000))))

    for other in (gzip.compress(b"x"), gzip.compress(tar_of(("a", b"x"))), b"\x1f\x8b\x08" + b"?" * 99, b""):
        with found_in(path) as found:
            kept, _ = path.read_bytes(), path.write_bytes(other)
            with pytest.raises(FDStoreError, match="it was changed while it was read"):
                contents_of(found)
            path.write_bytes(kept)


def test_the_method_of_each_member_of_a_zip_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(
        raw_zip(
            plain("stored", b"1" * 100),
            plain("deflated", b"2" * 100, method=8)._replace(data=deflated(b"2" * 100)),
            plain("bzip2", b"3" * 100, method=zipfile.ZIP_BZIP2)._replace(data=bz2.compress(b"3" * 100)),
        )
    )

    with found_in(tmp_path / "a.zip") as found:
        assert list(contents_of(found).values()) == [b"1" * 100, b"2" * 100, b"3" * 100]
        assert found.odd == []
