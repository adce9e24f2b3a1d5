"""Descriptions of long texts, which a model sees instead of the first page: their shape, errors and
definitions.

    text, or its two ends  ->  Sample  ->  the first kind that recognises it  ->  Preview

`KINDS` is the table of kinds, in the order in which they are tried. A kind is a function of a `Sample` that
returns an `Outline`, or None if the text is not of this kind: then the model sees head and tail. One pass of
RE2 finds which kinds need not be tried. What an outline states is counted, and `of` says what part of the
text was looked at, if not all of it. Every line that shows a part of the text begins with its number or says
what it is, and control characters in it are visible: so no text can pose as a statement about it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import re2

from fdstore.model.records import Record
from fdstore.text.previews.compiler_errors import compiler_error_inside, compiler_errors
from fdstore.text.previews.diffs import diff
from fdstore.text.previews.document_parts import STARTS as DOCUMENT_STARTS
from fdstore.text.previews.document_parts import document_parts
from fdstore.text.previews.headings import MARKS as HEADING_MARKS
from fdstore.text.previews.headings import outline
from fdstore.text.previews.html_outline import html
from fdstore.text.previews.json_shape import json_lines_shape, json_shape
from fdstore.text.previews.line_search import bytes_options
from fdstore.text.previews.logs import log, tests_inside
from fdstore.text.previews.metrics import metrics
from fdstore.text.previews.sample import Outline, Sample, fit, sample_ends, sample_text
from fdstore.text.previews.source_code import source_code
from fdstore.text.previews.tables import table
from fdstore.text.previews.tracebacks import traceback, traceback_inside

__all__ = ["KINDS", "Preview", "Sample", "preview_of", "sample_ends", "sample_text"]

_ANY = rb"\A"
_STARTS_AS_JSON = rb"\A[ \t\n\r]*[\[{]"

KINDS: tuple[tuple[Callable[[Sample], Outline | None], bytes], ...] = (
    (document_parts, DOCUMENT_STARTS),
    (json_shape, _STARTS_AS_JSON),
    (json_lines_shape, _STARTS_AS_JSON),
    (diff, rb"(?m:^)(?:diff --git |@@ -)"),
    (html, rb"<(?i:!doctype html|html)"),
    (traceback, rb"at |(?m:^)(?:Traceback |panic: |fatal error: )"),
    (compiler_errors, rb"warning|error"),
    (table, rb"\A[^\n]*[,\t;|]"),
    (metrics, rb"(?m:^)# TYPE "),
    (log, _ANY),
    (source_code, _ANY),
    (outline, HEADING_MARKS),
    (tests_inside, _ANY),
    (compiler_error_inside, rb"error"),
    (traceback_inside, rb"Traceback|panic|fatal|at "),
)
"""Each kind with what every text of the kind has somewhere."""


@cache
def _patterns() -> Any:
    patterns = re2.Set.SearchSet(bytes_options())
    for _, pattern in KINDS:
        patterns.Add(pattern)
    patterns.Compile()
    return patterns


class Preview(Record, frozen=True, kw_only=True):
    """A description of a text: a `text` that describes it, its `kind`, the part that was looked at (`of`),
    and how many characters of the end to show beside it, of the lines after `tail_after`."""

    kind: str
    of: str
    text: str
    tail_chars: int
    tail_after: int


def preview_of(sample: Sample, max_chars: int) -> Preview | None:
    r"""Return the preview of a text of a known kind, at most `max_chars` with its tail; None for any other.

    >>> found = preview_of(sample_text('[{"id": 1}, {"id": 2, "name": "b"}]'), 2000)
    >>> print(found.kind, found.of, found.text, sep="\n")
    json shape
    all
    array of 2
    a part of it: #J/0/id
      its 2 items: 2 objects
        id: 2 integers, 1 to 2
        name (in 1 of 2): string, e.g. "b"
    >>> preview_of(sample_text("plain words\n" * 1000), 2000) is None
    True
    """
    matching = set(_patterns().Match(sample.all_bytes))
    for number, (describe, _) in enumerate(KINDS):
        if number not in matching:
            continue
        found = describe(sample)
        if found is not None:
            tail_chars = min(found.tail_chars, max_chars // 3)
            text = fit(found.lines, max_chars - tail_chars)
            tail_after = found.tail_after if text.endswith(found.lines[-1]) else 0
            return Preview(
                kind=found.kind, of=found.of, text=text, tail_chars=tail_chars, tail_after=tail_after
            )
    return None
