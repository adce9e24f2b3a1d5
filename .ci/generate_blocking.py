"""Makes the blocking modules of the awaiting ones: `make generate`.

    python .ci/generate_blocking.py            writes them
    python .ci/generate_blocking.py --check    exits with 1 if one is stale, and names it

Whatever awaits is written once; `MODULES` names the module that is the same text without what awaits. Where
the two must differ, they import it from a module of which there are two; lines marked `awaiting only` are in
one alone. The rules below are applied to code,
comments and docstrings alike, so examples are right in both.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from generated_files import ROOT, update

MODULES = {
    "fdstore/wire/_async/runner.py": "fdstore/wire/_sync/runner.py",
    "fdstore/wire/_async/cluster.py": "fdstore/wire/_sync/cluster.py",
    "fdstore/client/_async/store.py": "fdstore/client/_sync/store.py",
    "fdstore/client/_async/following.py": "fdstore/client/_sync/following.py",
    "fdstore/client/_async/process.py": "fdstore/client/_sync/process.py",
    "fdstore/client/_async/writer.py": "fdstore/client/_sync/writer.py",
    "fdstore/toolset/_async.py": "fdstore/toolset/_sync.py",
}

HEADER = "# Generated from {source} by `make generate`: change that one.\n"

RULES = [
    (r"(?m)^.*  # awaiting only\n", ""),
    (r"(?<!\w)\(await ((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*)\)(?=[.\[])", r"\1"),  # (await x).y
    (r"\bawait ", ""),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bAsync(Iterator|Iterable|Generator)\b", r"\1"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAwaitable\[([^][]*)\]", r"\1"),
    (r"\baclos(e|ing)\b", r"clos\1"),
    (r"\b_async\b", "_sync"),
    (r"\bfdstore\.aio\b", "fdstore"),
]
"""Patterns and what they become, in this order."""


def blocking(text: str, source: str) -> str:
    """Return the blocking twin of a module.

    >>> blocking("async def size() -> int:\\n    return (await read()).size\\n", "a.py").splitlines()[1:]
    ['def size() -> int:', '    return read().size']
    """
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return HEADER.format(source=source) + text


def formatted(text: str, path: Path) -> str:
    """Return the text as the formatter would leave it, with its imports in order."""
    for command in (["check", "--select", "I,F401", "--fix-only", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def main(arguments: list[str]) -> int:
    made = (
        (name, formatted(blocking((ROOT / source).read_text("utf-8"), source), ROOT / name))
        for source, name in MODULES.items()
    )
    return update(made, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
