"""Clear old tool results of a long conversation that can be read again.

A model pays for its whole conversation at every turn. Once an answer has used more than `clear_at_tokens`,
the oldest results that another call shows again become one line that says how: pages, searches and lists,
and the previews of stored texts. Everything else stays: short results of the user's tools, errors, what has
been closed since, and results through names, which may mean another content by now. How much a result takes
is estimated, and calibrated by the usage of the last answer.

One batch is cleared down to `clear_to`, because each change of earlier messages costs one miss of the prompt
cache. A batch that would clear less than a tenth of `clear_at_tokens` is not worth that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec

from fdstore.elements.facts import NO_FACTS, ResultFacts
from fdstore.errors import InvalidArgument
from fdstore.model.fields import about
from fdstore.model.msgspec_types import prepare
from fdstore.results.wrapping import block_text
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.tokens import estimate_tokens
from fdstore.wire.operation import Operation

WORTH_CLEARING = 0.1
"""The share of `clear_at_tokens` that a batch must clear."""

PICTURE_CHARS, PICTURE_TOKENS = 6000, 1500
"""The counted size of a picture."""

_AGAIN = "[Cleared to save room; the same call shows it again.]"


class ClearingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rule of clearing. Raises `InvalidArgument` for a value out of its range.

    >>> ClearingConfig(clear_at_tokens=50_000).keep_turns
    3
    """

    clear_at_tokens: Annotated[
        int,
        about(
            "Clear when an answer has used more tokens, cached ones included; 0: never.",
            minimum=0,
            maximum=MAX_INTEGER,
        ),
    ] = 100_000
    keep_turns: Annotated[
        int,
        about("The results of so many of the last answers stay.", minimum=1, maximum=MAX_INTEGER),
    ] = 3
    clear_to: Annotated[
        float,
        about("The share of clear_at_tokens to clear down to.", exclusiveMinimum=0, exclusiveMaximum=1),
    ] = 0.5

    def __post_init__(self) -> None:
        for name, least in (("clear_at_tokens", 0), ("keep_turns", 1)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= MAX_INTEGER:
                raise InvalidArgument(name, f"must be an integer from {least} to {MAX_INTEGER}")
        if type(self.clear_to) not in (int, float) or not 0 < self.clear_to < 1:
            raise InvalidArgument("clear_to", "must be a number above 0 and below 1")

    def is_reached(self, used_tokens: int) -> bool:
        """Return whether to clear after an answer that used so many tokens."""
        return 0 < self.clear_at_tokens < used_tokens


prepare(ClearingConfig)


class ShownResult(msgspec.Struct, frozen=True):
    """A tool result in a conversation. `turn` is the number of the answer that called the tool, from 1."""

    key: str
    turn: int
    tool: str
    content: Any
    is_error: bool = False
    facts: ResultFacts = NO_FACTS


class _Clearable(msgspec.Struct, frozen=True):
    key: str
    content: Any
    line: str
    fds: tuple[str, ...]


def find_clearable(
    handle: ProcessHandle,
    results: Sequence[ShownResult],
    turns: int,
    used_tokens: int,
    calibrate: Callable[[], float],
    config: ClearingConfig,
) -> Operation[dict[str, str]]:
    """Return the line that replaces each result to clear, by its key, once `config` is reached; none if there
    is nothing to clear.

    `turns` is the number of answers, `used_tokens` those of the last one, `calibrate` returns the factor of
    estimates for this conversation. At most one round trip: a closed descriptor cannot be read again.
    """
    old = [each for each in results if each.turn <= turns - config.keep_turns]
    found = [clearable for each in old if (clearable := _clearable(each)) is not None]
    fds = sorted({fd for each in found for fd in each.fds})
    held: set[str] = set()
    if fds:
        [contents] = yield [("HMGET", handle.keys.fds, *fds)]
        held = {fd for fd, content in zip(fds, contents, strict=True) if content}
    readable = [each for each in found if held.issuperset(each.fds)]
    chosen = choose(readable, used_tokens, calibrate(), config)
    return {each.key: each.line for each in chosen}


def choose(
    readable: Sequence[_Clearable], used_tokens: int, factor: float, config: ClearingConfig
) -> list[_Clearable]:
    """Return the first of these results that together have the tokens to clear; none if they are too few."""
    to_clear = used_tokens - config.clear_to * config.clear_at_tokens
    chosen: list[_Clearable] = []
    cleared = 0.0
    for each in readable:
        if cleared >= to_clear:
            break
        chosen.append(each)
        cleared += (estimated_tokens([each.content]) - estimate_tokens(each.line)) * factor
    return chosen if cleared >= WORTH_CLEARING * config.clear_at_tokens else []


def _clearable(result: ShownResult) -> _Clearable | None:
    """Return how to clear a result; None if it cannot be shown again, or is as short as the line."""
    facts = result.facts
    fds = facts.repeatable_fds
    line = _AGAIN
    if fds is None and _is_all_stored(result):
        fds = tuple(stored.fd for stored in facts.stored)
        again = ", ".join(f'read_fd(fd="{fd}")' for fd in fds)
        line = f"[Cleared to save room; it is stored: {again} shows it again.]"
    if result.is_error or fds is None or not all(fd.startswith("fd:") for fd in fds):
        return None
    return (
        _Clearable(result.key, result.content, line, fds) if size_of(result.content) > 2 * len(line) else None
    )


def _is_all_stored(result: ShownResult) -> bool:
    """Return whether each block of a result shows a stored content, and nothing else."""
    blocks = len(result.content) if isinstance(result.content, list) else 1
    shown = [stored.block for stored in result.facts.stored]
    return bool(shown) and not result.facts.processes and shown == list(range(blocks))


def size_of(content: Any) -> int:
    """Return about how many characters a content has for a model.

    >>> size_of([{"type": "text", "text": "four"}, {"type": "image", "source": {}}])
    6004
    """
    return sum(PICTURE_CHARS if part is None else len(part) for part in _parts(content))


def estimated_tokens(contents: Iterable[Any]) -> float:
    """Return about how many tokens these contents have for a model. Of much text only a sample is counted.

    >>> estimated_tokens(["four words, two marks", [{"type": "image", "source": {}}]])
    1505
    """
    parts = [part for content in contents for part in _parts(content)]
    texts = [part for part in parts if part is not None]
    return estimate_tokens("\n".join(texts)) + PICTURE_TOKENS * (len(parts) - len(texts))


def _parts(content: Any) -> Iterator[str | None]:
    """Yield the texts of a content, and None for each picture. Other blocks are JSON."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, (list, tuple)) else ():
        text = block_text(block)
        if text is not None:
            yield text
        elif isinstance(block, dict) and block.get("type") == "tool_result":
            yield from _parts(block.get("content"))
        elif isinstance(block, dict) and block.get("type") in ("image", "document"):
            yield None
        elif isinstance(block, dict):
            yield msgspec.json.encode(block).decode("utf-8")
