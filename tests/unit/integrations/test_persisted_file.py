"""A kept output is read only from where Claude Code keeps those of the session."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from fdstore.errors import FDStoreError, PathRefused
from fdstore.hosts.hooks.persisted_file import open_persisted, value_of_json


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The directory of the kept outputs of the session `0ab1`, with one output."""
    directory = tmp_path / ".claude" / "projects" / "-src-shop" / "0ab1" / "tool-results"
    directory.mkdir(parents=True)
    (directory / "b1.txt").write_text("all of it")
    return directory


def config_of(kept: Path) -> Path:
    return kept.parents[3]


def test_a_kept_output_of_the_session_is_read(kept: Path) -> None:
    with open_persisted(str(kept / "b1.txt"), "0ab1", config_of(kept)) as file:
        assert file.read() == b"all of it"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "b1.txt",
        "",
        "{kept}/../../../../../.claude/projects/-src-shop/0ab1/tool-results/b1.txt",
        "{kept}/../../other/tool-results/b1.txt",
        "{kept}/../secret.txt",
        "{kept}/deeper/b1.txt",
        "{kept}/link.txt",
        "{kept}/linked/b1.txt",
        "{kept}/pipe",
        "{kept}/.hidden",
        "{kept}/absent.txt",
        "{kept}",
        "{kept}/b1.txt\0",
    ],
)
def test_no_other_file_is_read(kept: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("a password")
    (kept / "link.txt").symlink_to(tmp_path / "secret")
    (kept / "linked").symlink_to(kept)
    (kept / ".hidden").write_text("hidden")
    os.mkfifo(kept / "pipe")

    with (
        pytest.raises(FDStoreError),
        open_persisted(path.format(kept=kept), "0ab1", config_of(kept)) as file,
    ):
        file.read()


def test_another_session_and_a_linked_directory_are_refused(kept: Path, tmp_path: Path) -> None:
    with pytest.raises(PathRefused), open_persisted(str(kept / "b1.txt"), "ffff", config_of(kept)):
        pass
    elsewhere = tmp_path / ".claude" / "projects" / "linked"
    elsewhere.symlink_to(tmp_path)
    path = elsewhere / ".claude" / "b1.txt"
    with pytest.raises(PathRefused), open_persisted(str(path), "0ab1", config_of(kept)):
        pass


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"result":"a\\nb"}', "a\nb"),
        (b'[{"type":"text","text":"a\\nb"}]', "a\nb"),
        (
            b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]',
            [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        ),
        (b'{"rows":[1]}', '{\n  "rows": [\n    1\n  ]\n}'),
        (b"not JSON", "not JSON"),
        (b"\xff", None),
    ],
)
def test_a_kept_json_is_stored_as_a_model_reads_it_best(data: bytes, text: object) -> None:
    file = io.BytesIO(data)

    assert value_of_json(file, is_result=True) == text
    assert file.read() == data


@pytest.mark.parametrize("data", [b'{"rows":[1]}', b"[1]", b'["cut'])
def test_a_kept_output_of_a_command_stays_as_it_is(data: bytes) -> None:
    assert value_of_json(io.BytesIO(data), is_result=False) == data.decode()


@pytest.mark.parametrize("data", [b"", b"a line of a log", b"[\xff"])
def test_a_kept_output_of_a_command_that_is_no_json_is_not_in_memory(data: bytes) -> None:
    file = io.BytesIO(data)

    assert value_of_json(file, is_result=False) is None
    assert file.read() == data
