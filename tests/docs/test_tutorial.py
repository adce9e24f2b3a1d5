"""The pages of the tutorial, followed word by word: in a copy of the checkout, with a new HOME and venv.

Each terminal of the page is a bash. The first one waits for the end of each command; the others, which are
named above their blocks, run servers, and are waited for until they have printed what is shown. What is shown
below a block must be printed, apart from times, numbers and hosts; `...` stands for what is left out. Machine
B is a directory with a HOME of its own.
"""

from __future__ import annotations

import calendar
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.children import Child
from tests.conftest import children_of
from tests.waiting import PATIENCE_S, wait_until

ROOT = Path(__file__).parent.parent.parent
PAGES = ("tutorial.md", "tutorial-network.md", "tutorial-workers.md", "tutorial-people.md")
PAGE = "".join((ROOT / "docs" / name).read_text("utf-8") for name in PAGES)
PORTS = ("6390", "8765")
"""The ports of the page's Redis and model; free ones take their place."""
FIRST = "Terminal 1"
FOLDERS = {"Machine B": "b"}
"""The folder in which a terminal begins, if it is not the checkout."""
COMMAND_S = 240.0
"""Longer than pip takes on a busy machine."""
BLOCK = re.compile(
    r"^## (?P<step>.+?)$|(?:^\*\*(?P<terminal>.+?)\*\*\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
REGISTRY = re.compile(r"PIP_|SSL_|REQUESTS_|(https?|no|all)_proxy$", re.IGNORECASE)
"""The variables that pip needs to reach the registry, as for `make`."""
VARYING = {
    r" after \d+\.\d s(?=: )": "",  # of a call that took longer than a second
    rf"\b{re.escape(socket.gethostname())}:": "vm:",
    r"\bvm:\d+-[0-9a-f]{6}\b": "vm:WORKER",
    r"assistant-[a-z2-7]{6}": "assistant-ID",
    r" after \S+ m?s$": "",
    rf"\b(?:{'|'.join(calendar.month_abbr[1:])})\b": "MONTH",  # in the log of Redis
    r"<?\d[\d.]* m?s\b(?! ago)": "TIME",
    r"\bnow\b|\b\d+ \w+ ago": "AGO",
    r"<?\d[\d.,]*": "0",
    r"\s+": " ",
}


class Block(NamedTuple):
    """Commands or a file, and the output that is shown after them."""

    step: str
    language: str
    terminal: str
    text: str
    shown: str


class Terminal:
    """A bash that gets the commands of a terminal, and the log of what it prints."""

    def __init__(self, log: Path, folder: Path, environ: dict[str, str]) -> None:
        self._log = log
        self._seen = 0
        self._typed = ""
        with log.open("wb") as output:
            self._bash = Child(
                ["bash"],
                deadline_s=None,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environ,
                text=True,
            )

    def __repr__(self) -> str:
        printed = self._log.read_text("utf-8", "replace")
        return f"the output that is shown after\n{self._typed}\nin a terminal that printed\n{printed}\n"

    def type(self, lines: str) -> None:
        assert self._bash.stdin
        self._typed = lines
        self._bash.stdin.write(lines)
        self._bash.stdin.flush()

    def run(self, command: str) -> tuple[int, str]:
        """Run a command to its end. Return its exit code and what it printed."""
        self.type(f"{command}\nprintf 'status:%s:\\n' $?\n")
        end = re.compile(r"status:(\d+):\n")
        wait_until(lambda: end.search(self.unseen), COMMAND_S, what=command)
        found = end.search(self.unseen)
        assert found
        printed = self.unseen[: found.start()]
        self._seen += found.end()
        return int(found[1]), printed

    @property
    def unseen(self) -> str:
        return self._log.read_text("utf-8", "replace")[self._seen :]

    def close(self) -> None:
        """Press Ctrl-C and close the terminal."""
        for pid in children_of(self._bash.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        self._bash.communicate(timeout=PATIENCE_S)


class Terminals:
    """The terminals of the page, opened when they are used."""

    def __init__(self, checkout: Path, home: Path) -> None:
        self._checkout, self._home = checkout, home
        self._opened: dict[str, Terminal] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Terminals:
        return self

    def __exit__(self, *error: object) -> None:
        fdstore = self._checkout / ".venv" / "bin" / "fdstore"
        if fdstore.exists():  # what a failed test left running
            subprocess.run([fdstore, "down"], env=self._environ("."), timeout=PATIENCE_S, capture_output=True)
        self._closing.close()

    def __getitem__(self, name: str) -> Terminal:
        if name not in self._opened:
            folder = FOLDERS.get(name, ".")
            log = self._home / f"{name}.log"
            terminal = Terminal(log, self._checkout / folder, self._environ(folder))
            self._opened[name] = terminal
            self._closing.callback(terminal.close)
        return self._opened[name]

    def _environ(self, folder: str) -> dict[str, str]:
        home = self._home / folder
        home.mkdir(exist_ok=True)
        registry = {name: value for name, value in os.environ.items() if REGISTRY.match(name)}
        path = f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin"
        return {**registry, "HOME": str(home), "PATH": path, "LANG": "C.UTF-8"}


def read_blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of the page, each with the output that is shown after it."""
    step, last = "", None
    for match in BLOCK.finditer(page):
        if match["step"]:
            step = match["step"]
        elif match["language"] != "text":
            if last:
                yield last
            last = Block(step, match["language"], match["terminal"] or FIRST, match["text"], "")
        else:
            assert last
            yield last._replace(shown=match["text"])
            last = None
    if last:
        yield last


def follow(block: Block, folder: Path, terminals: Terminals) -> None:
    """Do what the block says, and compare what is printed with what is shown."""
    if block.language != "sh":
        name = re.match(r"# file: (\S+)\n", block.text)
        assert name
        (folder / name[1]).write_text(block.text)
        return
    terminal = terminals[block.terminal]
    if block.terminal != FIRST:
        terminal.type(block.text)
        wait_until(lambda: not missing_lines(block.shown, terminal.unseen), what=terminal)
        return
    printed = ""
    is_refused = block.shown.startswith("fdstore: ")
    for line in block.text.splitlines():
        code, text = terminal.run(line)
        assert bool(code) == is_refused, f"{line} ended with {code}: {text}"
        printed += text
    missing = missing_lines(block.shown, printed)
    assert not missing, printed


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return the shown lines that were not printed, apart from what varies."""
    lines = {normalize(line) for line in printed.splitlines()}
    missing = []
    for line in shown.splitlines():
        wanted, cut, _ = normalize(line).partition("...")
        if not (any(each.startswith(wanted) for each in lines) if cut else wanted in lines):
            missing.append(line)
    return missing


def normalize(line: str) -> str:
    for pattern, replacement in VARYING.items():
        line = re.sub(pattern, replacement, line)
    return line.strip()


def free_port() -> str:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return str(bound.getsockname()[1])


@pytest.mark.timeout(600)
def test_a_newcomer_can_follow_the_tutorial_word_by_word(tmp_path):
    checkout, home = tmp_path / "fdstore", tmp_path / "home"
    home.mkdir()
    shutil.copytree(
        ROOT, checkout, ignore=shutil.ignore_patterns(".*", "__pycache__", "site", "build", "dist")
    )
    page = PAGE
    for port in PORTS:
        page = page.replace(port, free_port())
    seconds: Counter[str] = Counter()

    with Terminals(checkout, home) as terminals:
        for block in read_blocks(page):
            began = time.monotonic()
            follow(block, checkout / "tutorial", terminals)
            seconds[block.step] += time.monotonic() - began

    print(
        *(f"{each:6.1f} s  {step}" for step, each in seconds.items()),
        f"{sum(seconds.values()):6.1f} s",
        sep="\n",
    )
    assert [step.split(".")[0] for step in seconds] == [*"123456789", "10"]
