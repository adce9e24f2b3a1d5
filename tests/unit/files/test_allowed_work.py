"""Permissions of a program: everything on a person's embedded store, otherwise what the operator allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fdstore.errors import InvalidArgument, NotAllowed, PathRefused
from fdstore.files.paths import Root
from fdstore.files.permissions import CommandsOff, Permissions, parse_permissions


def worker(**options: object) -> Permissions:
    """The permissions of a worker on a store by URL."""
    return parse_permissions(embedded=False, **options)  # type: ignore[arg-type]


def test_programs_on_the_embedded_store_may_use_everything_they_name(tmp_path: Path) -> None:
    here = parse_permissions(embedded=True)
    (tmp_path / "notes.txt").write_text("notes")

    here.check_python(["os:system"])
    here.check_origin({"os:system": "posix"})
    here.check_commands(["grep"])
    os.close(here.open_preload(str(tmp_path / "notes.txt")))

    assert here.resolve_export_root("/srv/out") == Root("/srv/out", make=True)
    assert here.resolve_preload_root("/srv/docs") == Root("/srv/docs", kind="preload root")


def test_without_a_configured_directory_there_is_no_root() -> None:
    assert parse_permissions(embedded=True).resolve_export_root(None) is None
    assert parse_permissions(embedded=True).resolve_preload_root(None) is None
    assert worker(preload_root="/srv").resolve_preload_root(None) is None


def test_allow_options_also_apply_to_the_embedded_store() -> None:
    with pytest.raises(NotAllowed):
        parse_permissions(embedded=True, commands=["grep"]).check_commands(["sort"])


@pytest.mark.parametrize("pattern", ["/bin/cat", "./tool", "*/grep"])
def test_a_pattern_of_paths_which_never_run_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^--allow-command: .* is a path; programs are named alone"):
        worker(commands=["grep", pattern])


def test_commands_that_are_off_are_refused_whatever_is_allowed() -> None:
    for permissions in (
        Permissions(commands_off="no sandbox"),
        Permissions(all_allowed=False, commands=("*",), commands_off="no sandbox"),
    ):
        permissions.check_commands([])
        with pytest.raises(CommandsOff, match=r"^commands are off on this worker: no sandbox$"):
            permissions.check_commands(["grep"])
    with pytest.raises(NotAllowed, match="--allow-command 'grep'"):
        Permissions(all_allowed=False, commands_off="no sandbox").check_commands(["grep"])


@pytest.mark.parametrize(
    ("pattern", "function"),
    [("pkg.tools:*", "pkg.tools:find"), ("pkg.tools:find", "pkg.tools:find"), ("*", "any.module:find")],
)
def test_a_function_that_matches_a_pattern_is_allowed(pattern: str, function: str) -> None:
    worker(python=["other:*", pattern]).check_python([function])


@pytest.mark.parametrize(
    "function", ["os:system", "pkg.tools2:find", "a.pkg.tools:find", "PKG.tools:find", ""]
)
def test_a_function_that_matches_no_pattern_is_refused_with_the_option_that_would_allow_it(
    function: str,
) -> None:
    with pytest.raises(NotAllowed) as refused:
        worker(python=["pkg.tools:*"]).check_python(["pkg.tools:find", function])

    assert refused.value.type == "permission_error"
    assert str(refused.value).endswith(f"its operator allows it with --allow-python '{function}'")


def test_a_wildcard_does_not_match_functions_imported_from_another_package() -> None:
    allowed = worker(python=["pkg.tools:*", "pkg.other:system"])

    allowed.check_origin({"pkg.tools:find": "pkg._find", "pkg.other:system": "posix"})
    with pytest.raises(NotAllowed, match=r"'pkg\.tools:system', which 'posix' defines,"):
        allowed.check_origin({"pkg.tools:system": "posix"})


def test_a_command_is_refused_with_the_option_that_would_allow_it() -> None:
    with pytest.raises(NotAllowed, match=r"the command 'sort' is not allowed .* --allow-command 'sort'"):
        worker(commands=["grep"]).check_commands(["grep", "sort"])
    with pytest.raises(NotAllowed, match="'/usr/bin/grep'"):
        worker(commands=["grep"]).check_commands(["/usr/bin/grep"])


def test_the_export_root_of_a_program_lies_below_that_of_the_worker() -> None:
    allowed = worker(export_root="/srv/out")

    assert allowed.resolve_export_root(None) == Root("/srv/out", make=True)
    assert allowed.resolve_export_root("./a/b/") == Root("/srv/out", ("a", "b"), make=True)
    for outside in ("/etc", "../x", "a/../../x", ".git", "a/.ssh"):
        with pytest.raises(PathRefused, match=r"must be relative, without '\.\.' and hidden names"):
            allowed.resolve_export_root(outside)
    assert worker().resolve_export_root("out") is None


def test_files_of_programs_are_read_below_the_preload_root_of_the_worker(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("a")
    (docs / ".env").write_text("secret")
    (tmp_path / "secret").write_text("secret")
    (docs / "link").symlink_to("../secret")
    allowed = worker(preload_root=str(docs))

    os.close(allowed.open_preload(str(docs / "a.txt")))

    assert allowed.resolve_preload_root(str(docs / "sub")) == Root(str(docs), ("sub",), kind="preload root")
    assert allowed.resolve_preload_root(str(tmp_path)) is None
    for path in (".env", "link"):
        with pytest.raises(PathRefused):
            allowed.open_preload(str(docs / path))
    for path in (str(tmp_path / "secret"), f"{docs}/../secret", "/proc/self/environ", f"{docs}2/a.txt"):
        with pytest.raises(NotAllowed, match="--preload-root"):
            allowed.open_preload(path)
    with pytest.raises(NotAllowed, match="--preload-root"):
        worker().open_preload(str(docs / "a.txt"))
