"""Source code: the lines that look like definitions, with their numbers."""

from __future__ import annotations

import re

from fdstore.text.previews.sample import JUDGED_CHARS, Outline, Sample, numbered_excerpt, part_of

MIN_DEFINITIONS = 3
MAX_CODE_LINES = 2000
"""The most lines that are looked at."""

_LANGUAGES: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    # what defines something, and a line that no prose has
    "Python": (
        re.compile(r"\s*(?:async def|def) \w+[\[(]|class \w+[(:\[]"),
        re.compile(
            r"(?:from [\w.]+ import |import [\w.]+(?: as \w+)?$|\s*(?:async )?def \w+\([^()]*\).{0,80}?:$)"
        ),
    ),
    "Go": (re.compile(r"func [(\w]|type \w+ (?:struct|interface)\b"), re.compile(r"package \w+\s*$")),
    "Rust": (
        re.compile(
            r"\s*(?:pub(?:\([\w:]+\))? )?(?:(?:async |const |unsafe )*fn \w+|(?:struct|enum|trait|mod) \w+"
            r"|impl\b.*\{)"
        ),
        re.compile(r"use [\w:{}*, ]+;|\s*(?:pub )?fn \w+.*\{\s*$"),
    ),
    "Java": (
        re.compile(
            r"\s*(?:(?:public|private|protected|static|final|abstract|sealed) )+[\w<>\[\], ?]+"
            r"(?:\(|\{|\b(?:class|interface|enum|record)\b)"
        ),
        re.compile(r"(?:package|import(?: static)?) [\w.*]+;"),
    ),
    "JavaScript": (
        re.compile(
            r"\s*(?:export (?:default )?)?(?:(?:async )?function\b\*? ?\w*\(|(?:abstract )?class \w+"
            r"|(?:interface|enum) \w+|type \w+ ="
            r"|(?:const|let|var) \w+ = (?:async )?(?:function\b|\([^()]*\)[^()]{0,80}=>|\w+ =>))"
        ),
        re.compile(
            r"import .* from ['\"]|import ['\"]|(?:const|let|var) .* = require\(|export |\s*\}\);?\s*$"
        ),
    ),
    "C": (
        re.compile(
            r"(?:[A-Za-z_][\w:<>]*+[ *&]++)+[A-Za-z_]\w*(?:::~?\w+)?\([^;]*$"
            r"|(?:struct|enum|union|class) \w+ ?\{?$"
        ),
        re.compile(r"#\s*include [<\"]"),
    ),
}


def source_code(sample: Sample) -> Outline | None:
    """Describe source code of one of a few languages."""
    if len(sample.first) < MIN_DEFINITIONS or any(line.startswith("```") for line in sample.first):
        return None
    for language, (definition, mark) in _LANGUAGES.items():
        if not any(mark.match(line, 0, JUDGED_CHARS) for line in sample.first[:200]):
            continue
        lines = sample.more_lines(MAX_CODE_LINES)
        found = [
            numbered_excerpt(number, line)
            for number, line in enumerate(lines, 1)
            if definition.match(line, 0, JUDGED_CHARS)
        ]
        if len(found) < MIN_DEFINITIONS:
            continue
        of = sample.range_of_first(len(lines))
        shown = [f"{language}: {len(found)} lines that look like definitions{part_of(of)}", *found]
        return Outline(kind="source code", of=of, lines=shown)
    return None
