"""Source code: the lines that look like definitions, with their numbers."""

from __future__ import annotations

import re
from typing import Any

from fdstore.text.previews.line_search import compile_words, find_lines
from fdstore.text.previews.sample import JUDGED_CHARS, Outline, Sample, numbered_excerpt, part_of

MIN_DEFINITIONS = 3


def _lines_that_begin(pattern: bytes) -> Any:
    return compile_words(rb"(?m:^)(?:" + pattern + rb")")


_LANGUAGES: dict[str, tuple[Any, re.Pattern[str]]] = {
    # what defines something, and a line that no prose has
    "Python": (
        _lines_that_begin(rb"[ \t]*(?:async def|def) \w+[\[(]|class \w+[(:\[]"),
        re.compile(
            r"from [\w.]+ import |import [\w.]+(?: as \w+)?$|(?:async )?def \w+\([^()]*\).{0,80}?:$"
            r"|class \w+.*:$"
        ),
    ),
    "Go": (_lines_that_begin(rb"func [(\w]|type \w+ (?:struct|interface)\b"), re.compile(r"package \w+\s*$")),
    "Rust": (
        _lines_that_begin(
            rb"[ \t]*(?:pub(?:\([\w:]+\))? )?(?:(?:async |const |unsafe )*fn \w+"
            rb"|(?:struct|enum|trait|mod) \w+|impl\b.*\{)"
        ),
        re.compile(r"use [\w:{}*, ]+;|\s*(?:pub )?fn \w+.*\{\s*$"),
    ),
    "Java": (
        _lines_that_begin(
            rb"[ \t]*(?:(?:public|private|protected|static|final|abstract|sealed) )+[\w<>\[\], ?]+"
            rb"(?:\(|\{|\b(?:class|interface|enum|record)\b)"
        ),
        re.compile(r"(?:package|import(?: static)?) [\w.*]+;"),
    ),
    "JavaScript": (
        _lines_that_begin(
            rb"[ \t]*(?:export (?:default )?)?(?:(?:async )?function\b\*? ?\w*\(|(?:abstract )?class \w+"
            rb"|(?:interface|enum) \w+|type \w+ ="
            rb"|(?:const|let|var) \w+ = (?:async )?(?:function\b|\([^()]*\)[^()]{0,80}=>|\w+ =>))"
        ),
        re.compile(
            r"import .* from ['\"]|import ['\"]|(?:const|let|var) .* = require\(|export |\s*\}\);?\s*$"
        ),
    ),
    "C": (
        _lines_that_begin(
            rb"(?:[A-Za-z_][\w:<>]*[ *&]+)+[A-Za-z_]\w*(?:::~?\w+)?\([^;\n]*(?m:$)"
            rb"|(?:struct|enum|union|class) \w+ ?\{?(?m:$)"
        ),
        re.compile(r"#\s*include [<\"]"),
    ),
}


_OTHER_SCRIPT = re.compile(r"#!.*\b(?:(?:ba|da|fi|k|z)?sh|perl|ruby|php|[gm]?awk|tclsh|lua)")


def source_code(sample: Sample) -> Outline | None:
    """Describe source code of one of a few languages. A script of another one may hold some of it."""
    if len(sample.first) < MIN_DEFINITIONS or sample.is_document or _OTHER_SCRIPT.match(sample.script_of):
        return None
    for language, (definition, mark) in _LANGUAGES.items():
        if not any(mark.match(line, 0, JUDGED_CHARS) for line in sample.first[:200]):
            continue
        found = find_lines(sample.spans, definition)
        if len(found.lines) < MIN_DEFINITIONS:
            continue
        of = found.range_in(sample.total_lines)
        shown = [
            f"{language}: {len(found.lines)} lines that look like definitions{part_of(of)}",
            *(numbered_excerpt(line.number, line.text) for line in found.lines),
        ]
        return Outline(kind="source code", of=of, lines=shown)
    return None
