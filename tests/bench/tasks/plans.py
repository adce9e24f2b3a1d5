"""Plans by which a model finds, reads and counts with what each column gives it.

A plan is a generator: it yields the model's next message, receives the results of its calls, and returns the
answer. It knows a text only by what was shown to it. The same plan solves a task in all columns; what differs
is how a `Hand` looks into a text that was not shown whole.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

from fdstore.model.records import Record
from fdstore.testing import call, turn
from fdstore.testing.replies import Turn
from tests.bench.tasks.hosts import READ_LINES, Column

T = TypeVar("T")
Steps: TypeAlias = Generator[Turn, list[str], T]
Plan: TypeAlias = Steps[str]

NUMBERED = re.compile(r"^[0-9]+:", re.MULTILINE)

TOGETHER = 10
"""Calls in one message."""

_FD = re.compile(r'<fd_result fd="(fd:[0-9]+)" pages="([0-9]+)".*?total_lines="([0-9]+)"')
_WHOLE = re.compile(
    r'<fd_result fd="fd:[0-9]+" pages="[0-9]+" truncated="false" lines="1-([0-9]+)" total_lines="\1"'
    r".*?<preview>\n(.*)\n</preview>\n</fd_result>",
    re.DOTALL,
)
_SAVED = re.compile(r"Full output saved to: (\S+)")


class Text(Record, frozen=True, kw_only=True):
    """A text as far as a model knows it: what was shown, and where the rest is (`fd:3`, or a path)."""

    shown: str
    rest: str = ""


def text_of(shown: str) -> Text:
    """Return the text that a result shows, and where it is if not all of it is shown."""
    if (whole := _WHOLE.search(shown)) is not None:
        return Text(shown=whole[2])
    found = _FD.search(shown) or _SAVED.search(shown)
    return Text(shown=shown, rest=found[1] if found else "")


class Hand:
    """The calls of a model in one column."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.has_fds = column == "fdstore"
        self.question = ""
        """The first message of the user, as it was shown."""

    def fetch(self, *names: str) -> Steps[list[Text]]:
        """Fetch texts by name, several calls in one message."""
        return (yield from self.each([call("fetch", name=name) for name in names]))

    def each(self, calls: Sequence[Turn]) -> Steps[list[Text]]:
        """Make these calls, some in one message."""
        made = []
        for first in range(0, len(calls), TOGETHER):
            made += list(map(text_of, (yield turn(*calls[first : first + TOGETHER]))))
        return made

    def find(self, texts: Sequence[Text], pattern: str, context: int = 0) -> Steps[list[str]]:
        """Return for each text what a search shows, or the text itself where all of it was shown, or where
        what was shown has a match, whose lines may have their numbers before them."""
        found = [NUMBERED.sub("", text.shown) for text in texts]
        unseen = [
            number
            for number, text in enumerate(texts)
            if text.rest and not re.search(pattern, found[number], re.MULTILINE)
        ]
        calls = [self._search(texts[number].rest, pattern, context) for number in unseen]
        for number, shown in zip(unseen, (yield from self.each(calls)), strict=True):
            found[number] = shown.shown
        return found

    def fetch_and_find(self, names: Sequence[str], pattern: str) -> Steps[list[str]]:
        """Fetch texts, and search those that were not shown whole beside the next ones."""
        found: list[str] = []
        unseen: list[int] = []
        for first in range(0, len(names) + TOGETHER, TOGETHER):
            searches = [self._search(text_of(found[number]).rest, pattern, 0) for number in unseen]
            fetches = [call("fetch", name=name) for name in names[first : first + TOGETHER]]
            if not searches and not fetches:
                break
            shown = yield turn(*searches, *fetches)
            for number, result in zip(unseen, shown, strict=False):
                found[number] = result
            unseen = []
            for result in shown[len(searches) :]:
                if text_of(result).rest and not re.search(pattern, result):
                    unseen.append(len(found))
                found.append(result)
        return found

    def count(self, text: Text, pattern: str) -> Steps[str]:
        """Return the number of lines that match."""
        if not text.rest:
            return str(len(re.findall(pattern, text.shown, re.MULTILINE)))
        [found] = yield (
            call("search_fd", fd=text.rest, pattern=pattern, max_matches=1)
            if self.has_fds
            else call("search_file", path=text.rest, pattern=pattern, only_count=True)
        )
        number = re.search(r'matches="([0-9]+)"|^([0-9]+) matching lines', found)
        return number[1] or number[2] if number else ""

    def lines(self, text: Text, first: int, count: int) -> Steps[str]:
        """Return lines of a text that was not shown whole."""
        if not text.rest:
            return "".join(text.shown.splitlines(keepends=True)[first - 1 : first - 1 + count])
        [shown] = yield (
            call("read_fd", fd=f"{text.rest}#L{first}-{first + count - 1}")
            if self.has_fds
            else call("read_file", path=text.rest, start_line=first, line_count=count)
        )
        return shown

    def whole(self, text: Text) -> Steps[list[str]]:
        """Return all of a text, in parts."""
        if not text.rest:
            return [text.shown]
        if self.has_fds:
            found = _FD.search(text.shown)
            assert found is not None
            if "<preview kind=" in text.shown:
                return (yield call("read_fd", fd=text.rest, read_all=True))
            return [text.shown, *(yield call("read_fd", fd=text.rest, start=2, count=int(found[2]) - 1))]
        parts = yield call("read_file", path=text.rest)
        while parts[-1].count("\n") == READ_LINES:
            parts += yield call("read_file", path=text.rest, start_line=len(parts) * READ_LINES + 1)
        return parts

    def _search(self, rest: str, pattern: str, context: int) -> Turn:
        arguments: dict[str, object] = {"fd" if self.has_fds else "path": rest, "pattern": pattern}
        if context:
            arguments["context" if self.has_fds else "context_lines"] = context
        return call("search_fd" if self.has_fds else "search_file", arguments)


def first_match(shown: str, pattern: str) -> str:
    """Return the first group of a pattern in what was shown, "" if there is none."""
    found = re.search(pattern, shown, re.MULTILINE)
    return found[1] if found else ""
