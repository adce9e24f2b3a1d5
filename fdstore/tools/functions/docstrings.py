"""Split a docstring into the description of a tool and those of its parameters.

The style is that of `Args:` sections: one indented entry for each parameter, continued on lines that are
indented deeper.
"""

from __future__ import annotations

import re
from collections.abc import Collection

_HEADING = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_ENTRY = re.compile(r"(?P<name>\*{0,2}[A-Za-z_]\w*)\s*(?:\([^)]*\))?:(?:\s+(?P<text>.*))?")


def split_docstring(text: str, parameters: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return the description of a function, and of its `parameters` by name.

    `text` is a docstring without common indentation. The section is removed from the description, because the
    schema repeats it; it stays if it describes anything else than these parameters.

    >>> split_docstring("Find lines.\\n\\nArgs:\\n    word: What to find,\\n        exactly.", ["word"])
    ('Find lines.', {'word': 'What to find, exactly.'})
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if _HEADING.fullmatch(line)), None)
    if start is None:
        return text, {}
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    found = _entries(lines[start + 1 : end])
    described = {name: words for name, words in found.items() if name in parameters and words}
    if not found or not found.keys() <= set(parameters):
        return text, described
    rest = "\n".join(lines[:start]).rstrip(), "\n".join(lines[end:]).strip()
    return "\n\n".join(part for part in rest if part), described


def _entries(lines: list[str]) -> dict[str, str]:
    """Return the entries of a section by name; {} if a line belongs to none."""
    found: dict[str, list[str]] = {}
    words: list[str] | None = None
    indent = min((_indent(line) for line in lines if line.strip()), default=0)
    for line in filter(str.strip, lines):
        entry = _ENTRY.fullmatch(line.strip()) if _indent(line) == indent else None
        if entry is not None:
            words = found[entry["name"]] = []
            words += [entry["text"]] if entry["text"] else []
        elif words is None or _indent(line) == indent:
            return {}
        else:
            words.append(line.strip())
    return {name: " ".join(words) for name, words in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
