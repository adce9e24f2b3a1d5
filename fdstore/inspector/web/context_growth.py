"""Tokens that descriptors kept out of the context of agents, turn by turn, from entries of journals. Pure.

Each turn sends the whole conversation again. `sent` is what the provider has counted for it; `without` is
what it would have been if every text that was stored stood in the conversation: plus what stored texts have
more than the elements that stand for them, plus what was cleared, less what was read back. These three are
estimates (`text.tokens`), those of `fdstore saved`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec

from fdstore.inspector.reading.entries import ConversationEntry
from fdstore.model.records import Record
from fdstore.tools.catalogue import FD_TOOLS

MAX_TURNS = 2_000
"""Turns that are kept of one journal; in a longer one neighbours are added together."""

LARGEST_CONTEXT = 1_000_000
"""Tokens that the models with the largest contexts take at once: of a program without `context_window`."""

MAX_POINTS = 120
"""Points of a curve."""


class Turns(msgspec.Struct, frozen=True):
    """`count` turns: when the last one was answered, the tokens of all of them together, those of the largest
    one without descriptors, whether results were cleared before one, and whether one would not have fitted
    into the context of its model."""

    at: float
    count: int
    sent: int
    without: int
    most: int
    is_cleared: bool
    is_beyond: bool


class Point(Record, frozen=True):
    """The tokens of all turns up to this one."""

    turn: int
    sent: int
    without: int


class SavedCurve(Record, frozen=True, kw_only=True):
    """The tokens that some processes have `sent` in all their `turns`, and would have sent `without`
    descriptors. `kept`, `cleared` and `read` are the tokens that were kept out of their contexts, taken out
    later, and read back; `most` is the largest turn without descriptors. Results were cleared before the
    turns `cleared_at`; `beyond_at` is the first turn that would not have fitted into its model's context."""

    turns: int
    sent: int
    without: int
    kept: int
    cleared: int
    read: int
    most: int = 0
    cleared_at: tuple[int, ...] = ()
    beyond_at: int | None = None
    points: tuple[Point, ...]

    @property
    def saved(self) -> int:
        """The tokens that were not sent."""
        return self.without - self.sent

    @property
    def percent(self) -> str:
        """The part of all tokens that was not sent."""
        return percent_of(self.saved, self.without)

    @property
    def headline(self) -> str:
        """How much less was sent, or more."""
        return times_of(self.sent, self.without)


def percent_of(part: int, whole: int) -> str:
    """Return a part in percent; more digits where it is nearly all.

    >>> percent_of(2, 3), percent_of(9998, 9999), percent_of(-1, 9), percent_of(0, 0)
    ('67', '99.98', '-11', '0')
    """
    percent = 100 * part / whole if whole > 0 else 0.0
    return f"{percent:.0f}" if percent < 99 else f"{int(percent * 100) / 100:g}"


def times_of(sent: int, without: int) -> str:
    """Return how many tokens were sent, beside those that would have been.

    >>> times_of(100, 1234), times_of(100, 160), times_of(100, 105), times_of(110, 100), times_of(100, 100)
    ('12 times less', '1.6 times less', '5 % less', '10 % more', 'as much')
    """
    if sent == without or not without:
        return "as much"
    times = without / max(sent, 1)
    if times >= 1.2:
        return f"{times:.0f} times less" if times >= 9.95 else f"{times:.1f} times less"
    percent = percent_of(abs(without - sent), without)
    return f"{percent} % {'less' if sent < without else 'more'}"


class ContextGrowth:
    """The turns of one conversation, of which entries are added in order."""

    def __init__(self) -> None:
        self.kept = self.cleared = self.read = 0
        self.turns: list[Turns] = []
        self._results: dict[str, int] = {}
        self._was_cleared = False
        self._context_window = LARGEST_CONTEXT

    def add(self, entry: ConversationEntry) -> None:
        """Add the next entry; its tokens were counted."""
        match entry.kind:
            case "system" | "prompt":
                self._store(entry)
                self._context_window = entry.context_window or self._context_window
            case "result" if entry.tool not in FD_TOOLS:
                self._store(entry)
            case "result" if not entry.is_error:
                self.read += entry.tokens
            case "cleared":
                removed = sum(self._results.pop(call, 0) for call in entry.calls)
                self.cleared += max(0, removed - entry.tokens)
                self._was_cleared = True
            case "answer" if entry.usage is not None:
                self._answer(entry.at or 0.0, entry.usage.input_tokens)
        if entry.kind == "result":
            self._results[entry.call] = entry.tokens

    def _store(self, entry: ConversationEntry) -> None:
        for stored in entry.facts.stored:
            shown = round(stored.shown_chars * entry.tokens / max(entry.chars, 1))
            self.kept += max(0, (stored.tokens or 0) - shown)

    def _answer(self, at: float, sent: int) -> None:
        without = max(0, sent + self.kept + self.cleared - self.read)
        is_beyond = without > self._context_window
        self.turns.append(Turns(at, 1, sent, without, without, self._was_cleared, is_beyond))
        self._was_cleared = False
        if len(self.turns) > MAX_TURNS:
            self.turns = [_together(self.turns[n : n + 2]) for n in range(0, len(self.turns), 2)]


def _together(turns: Sequence[Turns]) -> Turns:
    return Turns(
        turns[-1].at,
        sum(each.count for each in turns),
        sum(each.sent for each in turns),
        sum(each.without for each in turns),
        max(each.most for each in turns),
        any(each.is_cleared for each in turns),
        any(each.is_beyond for each in turns),
    )


def saved_curve(growths: Iterable[ContextGrowth]) -> SavedCurve | None:
    """Return the curve of these conversations, their turns in the order of time; None if there are none."""
    growths = list(growths)
    turns = sorted((turn for each in growths for turn in each.turns), key=lambda turn: turn.at)
    if not turns:
        return None
    step = -(-len(turns) // MAX_POINTS)
    pieces = [_together(turns[n : n + step]) for n in range(0, len(turns), step)]
    counts, sent, without = (
        list(accumulate(getattr(each, name) for each in pieces)) for name in ("count", "sent", "without")
    )
    numbered = zip(accumulate(each.count for each in turns), turns, strict=True)
    return SavedCurve(
        turns=counts[-1],
        sent=sent[-1],
        without=without[-1],
        kept=sum(each.kept for each in growths),
        cleared=sum(each.cleared for each in growths),
        read=sum(each.read for each in growths),
        most=max(each.most for each in turns),
        cleared_at=tuple(number for number, turn in zip(counts, pieces, strict=True) if turn.is_cleared),
        beyond_at=next((number for number, turn in numbered if turn.is_beyond), None),
        points=tuple(map(Point, counts, sent, without)),
    )


class CurveShape(msgspec.Struct, frozen=True):
    """The geometry of a curve in a box of 1000 by 100: the points of a line, and of the area between both;
    where results were cleared, and where contexts end. `labels` are the tokens at the ends of both lines."""

    sent: str
    without: str
    between: str
    cleared: tuple[float, ...]
    beyond: float | None
    labels: tuple[CurveLabel, ...]


class CurveLabel(msgspec.Struct, frozen=True):
    """A number beside a point: its place in percent of the box, and how far below the point it is written."""

    tokens: int
    is_estimate: bool
    x: float
    y: float
    below_px: int


def line_of(curve: SavedCurve) -> CurveShape:
    """Return the geometry of a curve; both lines begin at the lower left."""
    most = max(curve.sent, curve.without, 1)
    begin = Point(0, 0, 0)
    xs = [1000 * each.turn / curve.turns for each in (begin, *curve.points)]
    sent, without = (
        [
            f"{x:.1f},{100 - 100 * getattr(each, name) / most:.2f}"
            for x, each in zip(xs, (begin, *curve.points), strict=True)
        ]
        for name in ("sent", "without")
    )
    return CurveShape(
        " ".join(sent),
        " ".join(without),
        " ".join((*without, *sent[::-1])),
        tuple(round(1000 * turn / curve.turns, 1) for turn in curve.cleared_at),
        round(1000 * curve.beyond_at / curve.turns, 1) if curve.beyond_at else None,
        tuple(_labels(curve, most)),
    )


ABOVE_PX, BELOW_PX = -7, 17


def _labels(curve: SavedCurve, most: int) -> Iterator[CurveLabel]:
    """Yield the labels: the higher line's is above its end, the lower one's below, if there is room."""

    def label(at: Point, name: str, below_px: int) -> CurveLabel:
        tokens: int = getattr(at, name)
        x, y = 100 * at.turn / curve.turns, 100 - 100 * tokens / most
        return CurveLabel(tokens, name == "without", round(x, 1), round(y, 1), below_px)

    first, last = curve.points[0], curve.points[-1]
    if first.turn <= curve.turns / 4:
        yield label(first, "sent", ABOVE_PX)
    lower, higher = sorted(("sent", "without"), key=lambda name: getattr(last, name))
    yield label(last, higher, ABOVE_PX)
    if last.sent != last.without:
        is_low = getattr(last, lower) < 0.15 * most
        yield label(last, lower, ABOVE_PX if is_low else BELOW_PX)
