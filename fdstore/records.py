"""What fdstore's calls answer: frozen records, no behaviour beyond reading them.

Units: characters are Unicode code points, bytes are UTF-8, lines end with LF, positions are
1-based and inclusive, times are seconds since the epoch by the clock of Redis.
Field names are those of the Redis hashes, so `redis-cli HGETALL` and Python say the same.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fdstore.lifecycle import ContentState, ProcessState
from fdstore.prepared import prepare

Mode = Literal["page", "line", "char"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all records: immutable, keyword-only."""


class Origin(Record, frozen=True, kw_only=True):
    """Where an extraction was cut from: the first content, through any number of extractions.

    `content` is its id in Redis (`triage/3`), `fd` its name at the time, `chars` and `lines`
    the range "a-b" in it.
    """

    content: str
    fd: str
    chars: str
    lines: str


class Descriptor(Record, frozen=True, kw_only=True):
    """One descriptor of a process and the content behind it.

    `chars`, `bytes`, `lines` and `pages` count the whole content; an empty content has one
    (empty) page. `producer` is the process that made it. `chain` has the exit codes of the pipelines that
    made it, source first: pipelines separated by a blank, stages by a comma, `?` for a pipeline that was
    still running when its reader ended, or was lost.
    """

    fd: str
    state: ContentState
    chars: int
    bytes: int
    lines: int
    pages: int
    page_size: int
    source: str
    created_at: float
    producer: str
    origin: Origin | None = None
    exit_code: int | None = None
    reason: str | None = None
    chain: str | None = None


class Slice(Record, frozen=True):
    """A part of a content, exactly as stored.

    `page` is the number when exactly one page was read, "all" for `read_all`, else None.
    `count` is what was returned, in units of `mode`. `lines` and `chars` are the first and last
    one touched, "a-b" ("0-0" when nothing is there). `continued`: it starts in the middle of a
    line. `truncated`: it ends before the end of the line it ends in. `eof`: nothing comes after
    it, now or later; a broken content has no EOF, its `state` says so and `reason` why. `chain` is set at
    the EOF of a pipeline's output.

    >>> d = proc.create("one\\ntwo\\nthree")
    >>> part = proc.read(f"{d.fd}#C5-9")
    >>> part.text, part.lines, part.chars, part.truncated, part.eof
    ('two\\nt', '2-3', '5-9', True, False)
    """

    text: str
    fd: str
    mode: Mode
    page: int | Literal["all"] | None
    start: int
    count: int
    pages: int
    lines: str
    total_lines: int
    chars: str
    total_chars: int
    continued: bool
    truncated: bool
    state: ContentState
    eof: bool
    exit_code: int | None = None
    chain: str | None = None
    reason: str | None = None


class ContextLine(Record, frozen=True, kw_only=True):
    """A line near a hit: its 1-based number and its text without LF. `left_out` is how many
    characters at the end of a very long line are missing in `text`."""

    line: int
    text: str
    left_out: int = 0


class Hit(Record, frozen=True, kw_only=True):
    """One line that matches: its 1-based number, its text without LF, the range "a-b" of the
    first match in characters of the content ("0-0" for an empty match), and the lines around it.

    `line_start` is the character of the content at which the line begins, or what was searched of it.
    `column` is where the first match begins in `text`, 1-based. `text` is the whole line, but of a
    line longer than 2000 characters only a part around the match: `left_out` is how many characters
    of the line are missing before and after it.
    """

    line: int
    text: str
    chars: str
    column: int = 1
    line_start: int = 1
    left_out: tuple[int, int] = (0, 0)
    before: tuple[ContextLine, ...] = ()
    after: tuple[ContextLine, ...] = ()


class SearchResult(Record, frozen=True, kw_only=True):
    """`matches` counts lines that match, to the end of the range; `hits` holds the first
    `shown` of them: `max_matches`, or fewer when their text passes 8 million characters."""

    fd: str
    pattern: str
    hits: tuple[Hit, ...]
    shown: int
    matches: int
    lines_searched: int


class Export(Record, frozen=True, kw_only=True):
    """A finished export: `char_count` characters were written; the file has `size_bytes` now."""

    fd: str
    file_path: str
    mode: Literal["write", "append"]
    char_count: int
    size_bytes: int


class ProcessRecord(Record, frozen=True, kw_only=True):
    """One process as Redis holds it. `program` is an agent's, or the commands of a pipeline. `attempt`
    counts the claims by workers, `losses` those that were lost; `lease_until` is when the running claim
    lapses if it is not renewed, `trouble` what it is held up by, as a model that refuses. `outputs` are
    the descriptors, in its parent's table, of the streams that it was made to write: an agent's text; of a
    pipeline (`kind`) output, stderr, and each tee."""

    id: str
    state: ProcessState
    program: str | None = None
    parent: str | None = None
    attempt: int = 0
    losses: int = 0
    worker: str | None = None
    lease_until: float | None = None
    trouble: str | None = None
    waiting_for: tuple[str, ...] = ()
    kind: Literal["pipeline"] | None = None
    outputs: tuple[str, ...] = ()
    exit_code: int | None = None
    reason: str | None = None
    next_fd: int = 1
    next_child: int = 1
    started_at: float | None = None
    ended_at: float | None = None


class Unreadable(Record, frozen=True, kw_only=True):
    """A record that was passed over because it cannot be read: what it is, and what is wrong with it."""

    what: str
    problem: str


class TreeLimits(Record, frozen=True, kw_only=True):
    """What one tree may use; the root counts. `tree_depth` is generations, `tree_live` processes that have
    not ended, `tree_processes` ended ones too; `tree_fds` counts contents, however many descriptors share
    one, and `tree_bytes` their UTF-8. `retention_days` is how long the tree is kept after its last use, 0
    for ever.

    >>> proc = store.process("small", limits=fdstore.TreeLimits(tree_bytes=1 << 20))
    >>> store.tree("small").limits.tree_bytes
    1048576
    """

    tree_depth: int = 8
    tree_live: int = 64
    tree_processes: int = 1000
    tree_fds: int = 10_000
    tree_bytes: int = 4 << 30
    tree_export_bytes: int = 1 << 30
    tree_model_calls_per_day: int = 20_000
    tree_tokens_per_day: int = 1_000_000_000
    retention_days: float = 7


class TreeRecord(Record, frozen=True, kw_only=True):
    """One tree: what it uses of its limits, and its processes by time of birth. `fds` counts contents, as
    the limit does, `bytes` their UTF-8, `processes` all of them and `live` those that have not ended.
    `export_bytes` is what `fd_to_file` wrote so far; `model_calls` and `tokens` are those of the UTC day
    `usage_day` (days since 1970) by Redis' clock, the last on which a model was asked. `unreadable` names the
    processes that are missing in `members` because their records are damaged."""

    id: str
    created_at: float
    used_at: float
    bytes: int
    fds: int
    processes: int
    live: int
    limits: TreeLimits
    export_bytes: int = 0
    usage_day: int = 0
    model_calls: int = 0
    tokens: int = 0
    members: tuple[ProcessRecord, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()


class DroppedTree(Record, frozen=True, kw_only=True):
    """A tree that was removed: how many contents went, and which processes were cancelled for it."""

    tree: str
    contents: int
    cancelled: tuple[str, ...] = ()


class Survey(Record, frozen=True, kw_only=True):
    """All trees that can be read, by name, and what cannot: whole trees, and processes of others."""

    trees: list[TreeRecord]
    unreadable: list[Unreadable]


prepare(Descriptor, TreeLimits, ProcessState)
