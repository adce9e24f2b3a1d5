"""Hostile paths below a root, checked by the files that are written."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import PathRefused, TargetMissing
from fdstore.files.paths import Root
from fdstore.files.target import Target
from tests.unit.files.writing import MODES, Mode, both_modes, listing, put

# Paths under a root


@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("out.txt", "out.txt"),
        ("./out.txt", "out.txt"),
        ("sub/out.txt", "sub/out.txt"),
        ("sub//./out.txt", "sub/out.txt"),
        ("sub/~", "sub/~"),
        ("a b\n\t\\'\"<fd_result>", "a b\n\t\\'\"<fd_result>"),
        ("grün-😀-日本語", "grün-😀-日本語"),
        ("-rf", "-rf"),
        ("a...", "a..."),
        ("$(id) *", "$(id) *"),
        ("x" * 255, "x" * 255),
    ],
)
def test_a_relative_path_below_the_root_is_written(root: Path, path: str, file: str) -> None:
    assert put(path, root=root) == 3

    assert {name for name, text in listing(root).items() if text is not None} == {file}


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "it is empty"),
        (".", "names a directory"),
        ("..", "names a directory"),
        ("sub/", "names a directory"),
        ("new/", "names a directory"),
        ("sub/.", "names a directory"),
        ("sub/..", "names a directory"),
        ("/", "names a directory"),
        ("sub", "it is a directory, not a regular file"),
        ("../outside/secret", "holds '..'"),
        ("sub/../out.txt", "holds '..'"),
        ("sub/../../outside/secret", "holds '..'"),
        ("./../outside/secret", "holds '..'"),
        ("/etc/passwd", "it is absolute"),
        ("//etc/passwd", "it is absolute"),
        ("~/out.txt", "no home directory"),
        ("~root", "no home directory"),
        ("out\0.txt", "NUL"),
        ("out\ud800.txt", "no file name can have"),
        ("\udcff/out.txt", "no file name can have"),
        ("x" * 256, "longer than 255 bytes"),
        ("ü" * 128, "longer than 255 bytes"),
        ("y" * 300 + "/out.txt", "longer than 255 bytes"),
        ("file/out.txt", "'file' is a file, not a directory"),
        ("link-to-outside/secret", "'link-to-outside' is a symbolic link"),
        ("link-to-outside/new", "'link-to-outside' is a symbolic link"),
        ("link-to-sub/out.txt", "'link-to-sub' is a symbolic link"),
        ("link-to-secret", "it is a symbolic link"),
        ("link-to-file", "it is a symbolic link"),
        ("link-to-nothing", "it is a symbolic link"),
        ("link-to-itself", "it is a symbolic link"),
        ("link-to-itself/out.txt", "'link-to-itself' is a symbolic link"),
        ("link-to-secret/", "names a directory"),
        ("fifo", "it is a FIFO"),
        ("fifo/out.txt", "'fifo' is a FIFO"),
        ("socket", "it is a socket"),
        (".env", "'.env' is hidden"),
        ("./sub/.env", "'.env' is hidden"),
        (".git/config", "'.git' is hidden"),
        ("sub/.ssh/key", "'.ssh' is hidden"),
        ("...", "'...' is hidden"),
        ("..out", "'..out' is hidden"),
    ],
)
@both_modes
@pytest.mark.parametrize("exist_ok", [True, False])
def test_a_hostile_path_is_refused_and_nothing_is_touched(
    root: Path, path: str, problem: str, mode: Mode, exist_ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_bytes(b"old")
    (root / "link-to-outside").symlink_to("../outside")
    (root / "link-to-sub").symlink_to("sub")
    (root / "link-to-secret").symlink_to("../outside/secret")
    (root / "link-to-file").symlink_to("file")
    (root / "link-to-nothing").symlink_to("../outside/new")
    (root / "link-to-itself").symlink_to("link-to-itself")
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    before = listing(root.parent)

    with pytest.raises(PathRefused, match=problem):
        put(path, mode=mode, exist_ok=exist_ok, root=root)

    assert listing(root.parent) == before


def test_a_device_is_refused() -> None:
    with pytest.raises(PathRefused, match="it is a device, not a regular file"):
        put("null", root="/dev")


def test_a_missing_directory_is_not_created(root: Path) -> None:
    with pytest.raises(TargetMissing, match="its directory does not exist"):
        put("none/out.txt", root=root)

    assert listing(root) == {"sub": None}


@pytest.mark.parametrize("name", ["none", "file"])
def test_a_root_that_is_not_a_directory_is_named_in_the_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(PathRefused, match=f"the export root .*{name}' cannot be used"):
        put("out.txt", root=tmp_path / name)


def test_the_root_itself_may_be_reached_through_a_link(root: Path) -> None:
    (root.parent / "link").symlink_to("root")

    put("sub/out.txt", root=root.parent / "link")

    assert (root / "sub" / "out.txt").read_bytes() == b"new"


@both_modes
def test_a_directory_replaced_by_a_link_during_the_call_does_not_redirect_the_write(
    root: Path, mode: Mode
) -> None:
    with Target("sub/secret", mode=mode, root=root) as target:
        target.write(b"new")
        (root / "sub").rename(root / "moved")
        (root / "sub").symlink_to("../outside")
        target.commit()

    assert listing(root.parent / "outside") == {"secret": b"secret"}
    assert listing(root / "moved") == {"secret": b"new"}


def test_a_directory_replaced_by_a_link_during_the_path_walk_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.stat

    def look_then_swap(
        path: str, *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> os.stat_result:
        found = look(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
        if path == "sub" and dir_fd is not None:
            os.rename(root / "sub", root / "moved")
            os.symlink("../outside", root / "sub")
        return found

    with monkeypatch.context() as swapping:
        swapping.setattr(os, "stat", look_then_swap)
        with pytest.raises(PathRefused):
            put("sub/secret", root=root)

    assert listing(root.parent / "outside") == {"secret": b"secret"}


@both_modes
@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_a_file_replaced_by_something_else_during_the_call_is_refused(
    root: Path, mode: Mode, kind: str
) -> None:
    (root / "out.txt").write_bytes(b"old")

    with Target("out.txt", mode=mode, root=root) as target:
        target.write(b"new")
        (root / "out.txt").unlink()
        if kind == "link":
            (root / "out.txt").symlink_to("../outside/secret")
        elif kind == "fifo":
            os.mkfifo(root / "out.txt")
        else:
            (root / "out.txt").mkdir()
        with pytest.raises(PathRefused, match=kind if kind != "fifo" else "FIFO"):
            target.commit()

    assert listing(root.parent / "outside") == {"secret": b"secret"}
    assert {path.name for path in root.iterdir()} == {"out.txt", "sub"}


NAMES = st.sampled_from(["..", ".", "", "~", "sub", "file", "link", "up", "new", "x" * 256, "\0", "\ud800"])


@given(names=st.lists(NAMES | st.text(max_size=4), max_size=5), mode=st.sampled_from(MODES))
def test_no_path_leads_out_of_the_root(names: list[str], mode: Mode) -> None:
    with tempfile.TemporaryDirectory() as made:
        outside, root = Path(made), Path(made, "root")
        (root / "sub").mkdir(parents=True)
        (root / "file").write_bytes(b"old")
        (root / "link").symlink_to("../secret")
        (root / "up").symlink_to("..")
        (outside / "secret").write_bytes(b"secret")
        before = listing(outside)
        written: set[str] = set()

        try:
            put("/".join(names), mode=mode, root=root)
            written = {
                "/".join(["root", *(name for name in "/".join(names).split("/") if name not in ("", "."))])
            }
        except (PathRefused, TargetMissing):
            pass

        after = listing(outside)
        assert {
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        } == written


# Any path


def test_a_root_below_another_is_walked_without_following_links(root: Path) -> None:
    (root / "link").symlink_to("../outside")
    (root / "sub" / "link").symlink_to("../../outside")

    put("out.txt", root=Root(str(root), ("sub",)))
    for below in (("link",), ("sub", "link")):
        with pytest.raises(PathRefused, match="'link' is a symbolic link, not a directory"):
            put("secret", root=Root(str(root), below))

    assert (root / "sub" / "out.txt").exists()
    assert (root.parent / "outside" / "secret").read_bytes() == b"secret"


def test_a_root_is_created_only_on_request_and_its_parents_never(root: Path) -> None:
    with pytest.raises(PathRefused, match=r"the export root .* cannot be used"):
        put("out.txt", root=Root(str(root / "new")))
    with pytest.raises(PathRefused, match=r"the export root .* cannot be used"):
        put("out.txt", root=Root(str(root / "no" / "new"), make=True))

    put("out.txt", root=Root(str(root / "new"), ("a", "b"), make=True))

    assert (root / "new" / "a" / "b" / "out.txt").exists()
    assert not (root / "no").exists()
