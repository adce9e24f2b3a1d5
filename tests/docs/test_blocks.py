"""The blocks of every page of docs/ run as they stand, by the rules of tests/documents.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.children import Child
from tests.docs.conftest import Reader
from tests.documents import Block, blocks_of, check_output

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SESSION = Path(__file__).with_name("python_session.py").read_text("utf-8")

HOSTS = "tests/hosts runs the coding hosts that its commands start, tests/unit checks all commands"
TUTORIAL = "runs in a test of its own, from its first step"
NOT_RUN = {
    "tutorial.md": TUTORIAL,
    "tutorial-network.md": TUTORIAL,
    "tutorial-workers.md": TUTORIAL,
    "tutorial-people.md": TUTORIAL,
    "how-to/claude-code.md": HOSTS,
    "how-to/code.md": HOSTS,
    "how-to/codex.md": HOSTS,
    "how-to/gemini-cli.md": HOSTS,
    "how-to/gateway.md": HOSTS,
    "how-to/mcp.md": HOSTS,
}
"""Pages whose blocks others run, and why."""

STARTS_NO_HOST = re.compile(
    r"(make 2>&1 \| )?fdstore (put|saved|ls|token|hook install|gateway --(un)?wrap)\b"
)

PROSE = {
    "how-to/frameworks.md": "is about what all adapters share; each has a page of its own",
    "how-to/slow-servers.md": "its command starts a host; tests/hosts does",
    "how-to/install-for-hosts.md": "installs; tests/docs/test_tutorial.py installs in the same way",
    "how-to/model-servers.md": "its commands need servers of models",
    "how-to/inspector-runs.md": "its commands need a run; tests/acceptance exports runs",
    "how-to/inspector.md": "its command serves a browser until Ctrl-C; tests/browser visits every page",
    "how-to/observability.md": "its commands are workers, which run until a signal",
    "how-to/watching.md": "shows output with times",
    "how-to/costs-of-requests.md": "is about when tools are sent",
    "explanation/compatibility.md": "states a policy",
    "explanation/source.md": "is a list of files",
    "explanation/task-costs.md": "shows figures; tests/bench runs the tasks",
    "explanation/why-not-a-file.md": "compares",
    "explanation/programs.md": "its block is code of a model; tests/on_redis/programs runs such",
    "explanation/speed.md": "shows figures of one machine; tests/bench runs the benchmark",
    "explanation/upstream.md": "its block crashes an interpreter",
}
"""Pages without a block that runs, and why. Those of docs/reference are generated."""

PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text("utf-8")
    for path in sorted(DOCS.rglob("*.md"))
    if path.parent != DOCS / "reference"
}
CLI = (DOCS / "reference" / "cli.md").read_text("utf-8")
NOT_RUN |= {
    name: "tests/frameworks runs its example where the framework is installed"
    for name in PAGES
    if name.startswith("how-to/frameworks/")
}
NOT_RUN |= {
    f"how-to/frameworks/{name}.md": "tests/hosts runs its programs, for which Node is needed"
    for name in ("typescript", "typescript-agents")
}
RUN = [name for name in PAGES if name not in NOT_RUN]


def options_in(text: str) -> set[str]:
    return set(re.findall(r"(?<=[ `])--[a-z-]+", text))


# made from the code, which lint checks
_, _COMMON, *_SECTIONS = re.split(r"^## Common options$|^### fdstore ", CLI, flags=re.MULTILINE)
VERBS = {section.split("\n")[0]: options_in(section) | options_in(_COMMON) for section in _SECTIONS}


class Page:
    """Runs the blocks of one page, in order."""

    def __init__(self, name: str, reader: Reader) -> None:
        self.name, self.reader = name, reader
        self._python: Child[str] | None = None

    def run(self, block: Block) -> None:
        if block.file:
            file = self.reader.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, "utf-8")
        elif block.runs:
            printed = self._run_python(block) if block.language == "python" else self._run_sh(block)
            if block.prints is not None:
                check_output(DOCS / self.name, block.prints, printed)

    def _run_sh(self, block: Block) -> str:
        done = self.reader.run(block.text)
        assert done.returncode == 0, f"exit code {done.returncode}:\n{block.text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _run_python(self, block: Block) -> str:
        if self._python is None:
            command = [sys.executable, "-W", "error", "-c", SESSION]
            pipe = subprocess.PIPE
            self._python = Child(
                command, stdin=pipe, stdout=pipe, text=True, cwd=self.reader.folder, env=self.reader.environ
            )
        assert self._python.stdin
        assert self._python.stdout
        self._python.stdin.write(json.dumps([f"{self.name}, line {block.line}", block.text]) + "\n")
        self._python.stdin.flush()
        printed, error = json.loads(self._python.stdout.readline())
        assert error is None, f"{block.text}\n{error}"
        return printed

    def close(self) -> None:
        """End the session of Python, which waits for its next block."""
        if self._python:
            self._python.communicate()


@pytest.mark.parametrize("name", RUN)
def test_the_blocks_of_a_page_run_in_order(name, reader):
    with closing(Page(name, reader)) as page:
        for block in blocks_of(PAGES[name]):
            try:
                page.run(block)
            except BaseException as error:
                error.add_note(f"docs/{name}, line {block.line}")
                raise


@pytest.mark.parametrize("name", [name for name, why in NOT_RUN.items() if why == HOSTS])
def test_the_commands_of_a_host_page_that_start_no_host_run(name, reader):
    sh = "".join(block.text for block in blocks_of(PAGES[name]) if block.language == "sh")
    (reader.folder / ".mcp.json").write_text('{"mcpServers": {"logs": {"command": "log-server"}}}')
    reader.run("fdstore put shop build.log")

    lines = [line for line in sh.splitlines() if STARTS_NO_HOST.match(line)]

    assert lines
    for line in lines:
        # there is no terminal that could be asked
        done = reader.run(line + " --yes" if "hook install" in line else line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", RUN)
def test_a_page_has_a_block_that_runs_or_is_listed_with_the_reason(name):
    runs = any(block.runs for block in blocks_of(PAGES[name]))

    assert runs != (name in PROSE), "list it in PROSE" if not runs else "take it out of PROSE"


@pytest.mark.parametrize("name", PAGES)
def test_the_verbs_and_options_that_a_page_shows_exist(name):
    shown = [block.text for block in blocks_of(PAGES[name]) if block.language in ("sh", "console")]
    commands = re.findall(r"\bfdstore ([a-z][a-z-]*)( .*)?$", "\n".join(shown), re.MULTILINE)

    for verb, rest in commands:
        own = re.split(r" --(?= |$)| [|>#](?= )", rest)[0]
        assert verb in VERBS, f"fdstore {verb}"
        # the options of redis-cli and redis-server are their own
        assert verb.startswith("redis-") or options_in(own) <= VERBS[verb], f"fdstore {verb}{rest}"


def test_every_fence_of_a_page_belongs_to_a_block():
    for name, text in PAGES.items():
        blocks = blocks_of(text)
        outputs = [block for block in blocks if block.prints is not None]

        assert len(re.findall(r"^ *```", text, re.MULTILINE)) == 2 * len(blocks + outputs), name


def test_a_how_to_page_begins_with_what_its_reader_will_have_done():
    pages = {name: text for name, text in PAGES.items() if name.startswith("how-to/")}

    silent = [name for name, text in pages.items() if not re.match(r"# .+\n\nAt the end of this page", text)]

    assert pages
    assert not silent
