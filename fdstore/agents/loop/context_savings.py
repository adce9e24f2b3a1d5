"""The text that descriptors kept out of the conversations of agents, computed from their journals when asked.

The journal has each result once, with the facts of what was stored, so nothing is counted twice after a
crash, and nothing is written or sent for counting. What doors and users' own loops count at once is in
`store.processes.savings`, since they have no journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fdstore.agents.loop.conversation import Assistant, Cleared, Conversation
from fdstore.agents.loop.history import History, read_history
from fdstore.elements.facts import ResultFacts
from fdstore.errors import SKIPPABLE, NotFound
from fdstore.model.records import ProcessRecord
from fdstore.results.wrapping import block_text
from fdstore.store import tree_facts
from fdstore.store.keys import process_keys
from fdstore.store.processes import journal, process_records
from fdstore.store.processes.savings import Saved, Savings, day_of, label
from fdstore.store.record_format import unreadable
from fdstore.text.tokens import estimate_tokens
from fdstore.tools.catalogue import FD_TOOLS
from fdstore.wire.operation import Operation

SESSION = "agent"
"""The session under which agents are shown; loops of users name theirs."""


class Count(Protocol):
    """Adds numbers to the sums of a tool."""

    def __call__(self, tool: str, **counts: int) -> None: ...


def read_agent_savings(prefix: str, process: str | None = None) -> Operation[Savings]:
    """Return what was kept out of the conversations of a process and of all below it, or of all processes. It
    only reads: a round trip for each process, and one for each that it is a copy of. Raises `NotFound`,
    `DamagedRecord` for the tree of `process`."""
    if process is not None:
        tree = yield from process_records.tree_record(prefix, process.partition(".")[0])
        below = [each for each in tree.members if f"{each.id}.".startswith(f"{process}.")]
        return (yield from _savings_of_all(prefix, below))
    found = Savings(rows=[], unreadable=[])
    for name in (yield from tree_facts.tree_names(prefix, found.unreadable)):
        try:
            tree = yield from process_records.tree_record(prefix, name)
        except SKIPPABLE as error:
            found.unreadable.append(unreadable(error))
            continue
        except NotFound:
            continue  # collected meanwhile
        of_tree = yield from _savings_of_all(prefix, tree.members)
        found.rows.extend(of_tree.rows)
        found.unreadable.extend(of_tree.unreadable)
    return found


def _savings_of_all(prefix: str, members: Iterable[ProcessRecord]) -> Operation[Savings]:
    found = Savings(rows=[], unreadable=[])
    for member in members:
        if member.kind:
            continue
        try:
            records = yield from journal.read(prefix, member.id)
            if records:
                history = yield from read_history(process_keys(prefix, member.id), records)
                found.rows.extend(savings_of(member, history))
        except SKIPPABLE as error:
            found.unreadable.append(unreadable(error))
        except NotFound:
            continue  # collected meanwhile
    return found


def savings_of(process: ProcessRecord, history: History) -> list[Saved]:
    """Return what was kept out of one conversation, by tool. What a copy inherited is its original's."""
    conversation = history.conversation()
    before = sum(isinstance(entry, Assistant) for entry in history.inherited)
    sums: dict[str, dict[str, int]] = {}

    def count(tool: str, **counts: int) -> None:
        totals = sums.setdefault(label(tool), {})
        for name, number in counts.items():
            totals[name] = totals.get(name, 0) + number

    if start := Conversation(history.own).start:
        _count_stored("(input)", start.input, text_of(start.content), count)
        _count_stored("(preload)", start.preloads, start.system, count)
    for result in conversation.results():
        if result.turn <= before:
            continue
        text = text_of(result.content)
        if result.tool not in FD_TOOLS:
            _count_stored(result.tool, result.facts, text, count)
        elif not result.is_error:
            count(result.tool, read=1, read_chars=len(text), read_tokens=estimate_tokens(text))
    results = {result.key: result for result in conversation.results()}
    for entry in history.own:
        for key, line in entry.lines.items() if isinstance(entry, Cleared) else ():
            if (cleared := results.get(key)) is not None:
                text = text_of(cleared.content)
                tokens = max(0, estimate_tokens(text) - estimate_tokens(line))
                chars = max(0, len(text) - len(line))
                count(cleared.tool, cleared=1, cleared_chars=chars, cleared_tokens=tokens)
    day = day_of(process.started_at)
    return [
        Saved(process=process.id, day=day, session=SESSION, tool=tool, **counts)
        for tool, counts in sums.items()
    ]


def _count_stored(tool: str, facts: ResultFacts, text: str, count: Count) -> None:
    """Count each content that a text shows as an element, which has its share of the tokens of the text."""
    tokens_per_char = estimate_tokens(text) / max(len(text), 1) if facts.stored else 0.0
    for stored in facts.stored:
        tokens = stored.tokens or 0
        shown_tokens = round(stored.shown_chars * tokens_per_char)
        count(
            tool,
            stored_chars=stored.chars,
            stored_tokens=tokens,
            shown_chars=stored.shown_chars,
            shown_tokens=shown_tokens,
            kept=1,
            kept_chars=max(0, stored.chars - stored.shown_chars),
            kept_tokens=max(0, tokens - shown_tokens),
        )


def text_of(content: object) -> str:
    """Return the text of a result or a message: of blocks that of the text blocks, joined by LF."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(text for block in blocks if (text := block_text(block)) is not None)
