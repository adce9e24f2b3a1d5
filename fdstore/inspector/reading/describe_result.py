"""Results of tool calls in words for people."""

from __future__ import annotations

from fdstore.elements.result_facts import ResultFacts, ShownPart, StoredContent


def describe_result(facts: ResultFacts) -> str:
    """Return in words which descriptor, process or file a result is about, or the type of its error. "" if
    its text is other text, or begins with other text.

    >>> describe_result(ResultFacts(stored=(StoredContent(fd="fd:3", pages=2549, chars=10200000),)))
    'fd:3, stored: 2549 pages, 10,200,000 characters'
    >>> describe_result(ResultFacts(shown=(ShownPart(fd="fd:3", page=2, pages=2549, lines="81-160"),)))
    'fd:3, page 2 of 2549, lines 81-160'
    """
    return ", ".join(filter(None, _words(facts)))


def _words(facts: ResultFacts) -> list[str]:
    if (error := facts.error) is not None:
        return [error.type, error.fd]
    if facts.processes:
        process = facts.processes[0]
        code = "" if process.exit_code is None else f" with code {process.exit_code}"
        return [f"{process.process} {process.state}{code}", process.reason, process.fd]
    if facts.stored:
        return _words_of_stored(facts.stored[0]) if facts.stored[0].block == 0 else []
    if facts.shown:
        return _words_of_part(facts.shown[0])
    if (made := facts.extraction) is not None:
        what = {"part": "a part of", "all": "all of", "hits": "hits of a search in"}[made.what]
        return [made.fd, f"{what} {made.source_fd}", f"{made.chars:,} characters"]
    if (compared := facts.compared) is not None:
        return [f"{compared.a} to {compared.b}", f"+{compared.added} -{compared.removed} lines"]
    if (export := facts.export) is not None:
        done = "appended to" if export.appended else "written to"
        return [f"{export.fd} {done} {export.file_path}", f"{export.size_bytes:,} bytes"]
    if (search := facts.search) is not None:
        return [search.fd, f"pattern {search.pattern}", f"matches {search.matches}"]
    if facts.listed is not None:
        return [f"total {facts.listed}"]
    return [facts.written or facts.closed]


def _words_of_stored(stored: StoredContent) -> list[str]:
    if stored.kind == "bytes":
        return [f"{stored.fd}, stored: {stored.size_bytes:,} bytes of {stored.media_type}"]
    pages = "1 page" if stored.pages == 1 else f"{stored.pages} pages"
    return [f"{stored.fd}, stored: {pages}", f"{stored.chars:,} characters"]


def _words_of_part(part: ShownPart) -> list[str]:
    page = "" if part.page is None else f"page {part.page} of {part.pages}"
    return [part.fd, page, f"lines {part.lines}" if part.lines else "", part.media_type]
