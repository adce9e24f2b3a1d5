"""The blocks of documents, and what a reader needs to run them.

A fenced block is, by its language:

    python        run; all of a page in one namespace, in order
    sh            run with bash, which stops at the first line that fails
    python, toml  with a first line `# file: NAME`: written to that file
    others        only shown. `text` directly below a block that runs is what it prints, where `...` matches
                  any text

With `WRITE_OUTPUTS=1` in the environment, the tests that run them write into the document what a block prints
now, and fail nevertheless: read the difference before you commit it.
"""

from __future__ import annotations

import difflib
import doctest
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from fdstore.testing import ScriptedModel, call, say, turn
from fdstore.testing.requests import Request
from fdstore.tools.catalogue import BUILT_IN
from tests.unit.files.documents_made import pdf_of, xlsx_of

LOG_LINES = 5000
_FENCE = re.compile(r"^(```+)(\w*)[^\n`]*\n(.*?)^\1$\n?(\s*^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# file: (\S+)\n")


class Block(NamedTuple):
    """A fenced block. `line` is its first line in the document, `prints` the output shown below it."""

    language: str
    text: str
    line: int
    prints: str | None = None

    @property
    def file(self) -> str | None:
        """The file that the block is written to, if it is not run."""
        found = _FILE.match(self.text)
        return found[1] if found else None

    @property
    def runs(self) -> bool:
        return self.language == "sh" or (self.language == "python" and not self.file)


def blocks_of(document: str) -> list[Block]:
    """Return the blocks of a document, in order."""
    return [
        Block(found[2], found[3], document.count("\n", 0, found.start(3)) + 1, found[5])
        for found in _FENCE.finditer(document)
    ]


def check_output(document: Path, shown: str, printed: str, frame: str = "```text\n{}```") -> None:
    """Check that a block of a document printed what is shown below it, in this frame."""
    checker = doctest.OutputChecker()
    if checker.check_output(shown, printed, doctest.ELLIPSIS):
        return
    if os.environ.get("WRITE_OUTPUTS"):
        text = document.read_text("utf-8")
        now = frame.format(output_now(shown, printed))
        document.write_text(text.replace(frame.format(shown), now), "utf-8")
    raise AssertionError(checker.output_difference(doctest.Example("", shown), printed, doctest.ELLIPSIS))


def output_now(shown: str, printed: str) -> str:
    """Return what a document is to show of this output; where it leaves out parts, it goes on to do so."""
    if "..." not in shown:
        return printed
    lines = printed.splitlines(keepends=True)
    return "".join(
        line if "..." in line else next(iter(difflib.get_close_matches(line, lines, 1)), line)
        for line in shown.splitlines(keepends=True)
    )


def write_files(folder: Path) -> None:
    """Write the files that documents assume in the directory of their reader."""
    lines = (f"line {number} of the build\n" for number in range(1, LOG_LINES + 1))
    (folder / "build.log").write_text("".join(lines))
    (folder / "report.pdf").write_bytes(pdf_of("The year in figures", "Revenue grew in both cities."))
    rows = [
        ["city", "day", "revenue"],
        ["Paris", "s1|45323", "<v>1200</v>"],
        ["Lyon", "s1|45324", "<v>850</v>"],
    ]
    sheets = {"Totals": rows, "Rates": [["rate", "<v>0.2</v>"]]}
    (folder / "figures.xlsx").write_bytes(xlsx_of(sheets, hidden=["Rates"]))


def environment(url: str, model: ScriptedModel) -> dict[str, str]:
    """Return the environment of a reader whose store is at `url`."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, **model.environ, "FDSTORE_URL": url, "PATH": path}


def answers(request: Request):
    """A model that calls what it is offered: functions of the user first, then tools of the store."""
    if request.turn_number == 0:
        if "read_log" in request.tools:
            return call("read_log", path="build.log")
        if "spawn" in request.tools:
            part = ["fd:1#L100-119"]
            return turn(
                call("spawn", program_name="reader", query="study fd:1", additional_preload_fds=part),
                call("search_fd", fd="fd:1", pattern="line 12[0-9]"),
            )
        if "read_fd" in request.tools:
            return call("read_fd", fd="fd:2")
        if own := [name for name in request.tools if name not in BUILT_IN]:
            return call(own[0])
    return say(f'<ref id="cause">{request.last_text()[:200]}</ref>')
