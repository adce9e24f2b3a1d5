"""Each project has a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from fdstore.errors import InvalidArgument
from fdstore.hosts.project import project_of
from fdstore.store.keys import check_root


def test_directories_below_a_repository_share_its_process(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()

    assert project_of(tmp_path / "shop" / "src") == project_of(tmp_path / "shop")


def test_a_project_has_the_name_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "My Shop" / "src").mkdir(parents=True)

    assert project_of(tmp_path / "My Shop").process == "my-shop"
    assert project_of(tmp_path / "My Shop" / "src").process == "src"
    (tmp_path / "My Shop" / ".git").touch()  # as in a worktree
    assert project_of(tmp_path / "My Shop" / "src").process == "my-shop"


def test_a_directory_that_is_none_or_cannot_be_read_has_a_process_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert project_of("").process == project_of("/a\0b").process == "work"


@pytest.mark.parametrize("name", ["Größe & Maß", "x" * 200, "...", "漢字", "a b"])
def test_any_directory_has_a_valid_name(tmp_path: Path, name: str) -> None:
    check_root(project_of(tmp_path / name).process)


def test_fdstore_toml_names_the_process_and_the_size(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "fdstore.toml").write_text('process = "shop"\nmax_direct_output_chars = 20000\n')
    (tmp_path / "src").mkdir()

    project = project_of(tmp_path / "src")

    assert (project.process, project.config.max_direct_output_chars) == ("shop", 20000)


@pytest.mark.parametrize(
    "text",
    [
        'process = "No Name"',
        "proces = 'shop'",
        "max_direct_output_chars = -1",
        "process",
        "\0",
        "a" * 70_000,
        "a = " + "[" * 9000,
    ],
)
def test_an_invalid_fdstore_toml_is_a_typed_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "fdstore.toml").write_text(text)

    with pytest.raises(InvalidArgument):
        project_of(tmp_path)
