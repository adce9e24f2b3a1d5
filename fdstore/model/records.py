"""The records that fdstore's calls return: frozen structs without behaviour.

Units: characters are Unicode code points, bytes are UTF-8, lines end with LF, positions are
1-based and inclusive, times are seconds since the epoch by the clock of Redis.
Field names are those of the Redis hashes, so `redis-cli HGETALL` and Python agree.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from fdstore.model.fields import CountOf, TreeLimit, about
from fdstore.model.lifecycle import ENDED, ContentState, ProcessState
from fdstore.model.msgspec_types import prepare

Mode = Literal["page", "line", "char"]

MAX_MOMENT_S = 253_402_300_800
"""The year 10000: times from here on cannot be formatted."""

_MOST = 2**53
"""As `text.numbers.MAX_INTEGER`, which is above this module."""

Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
"""How many there are. A record in Redis is decoded within these bounds."""

Ordinal = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
"""A number that begins at 1, or a size that is never 0."""

Total = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
"""A sum that a crash may have left too low."""

Moment = Annotated[float, msgspec.Meta(ge=0, lt=MAX_MOMENT_S, description="seconds since the epoch")]
"""A time."""

Seconds = Annotated[float, msgspec.Meta(ge=0, lt=MAX_MOMENT_S, description="seconds")]
"""A duration."""

ContentKind = Literal["text", "bytes"]
"""The kind of a content: text (with pages, lines and characters) or bytes."""

TEXT_TYPE = "text/plain"
"""The media type of text that has no other."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all records: immutable, keyword-only."""


class Origin(Record, frozen=True, kw_only=True):
    """The source of an extraction: the first content, through any number of extractions.

    `content` is its id in Redis (`triage/3`), `fd` its name at the time, `chars` and `lines`
    the range "a-b" in it.
    """

    content: str
    fd: str
    chars: str
    lines: str


class Descriptor(Record, frozen=True, kw_only=True):
    """One descriptor of a process and the content behind it.

    `chars`, `bytes`, `lines` and `pages` count the whole content; an empty content has one (empty) page.
    `producer` is the process that created it. `chain` has the exit codes of the pipelines that produced it,
    source first: pipelines separated by a blank, stages by a comma, `?` for a pipeline that was lost, or was
    still running when its reader ended. Bytes (`kind`) have neither characters nor lines.
    """

    fd: str
    state: ContentState
    chars: Count
    bytes: Count
    lines: Count
    pages: Ordinal
    page_size: Ordinal
    source: str
    created_at: Moment
    producer: str
    origin: Origin | None = None
    exit_code: int | None = None
    reason: str | None = None
    chain: str | None = None
    kind: ContentKind = "text"
    media_type: str = TEXT_TYPE


class Slice(Record, frozen=True):
    """A part of a content, exactly as stored.

    `page` is the number if exactly one page was read, "all" for `read_all`, else None. `count` is the number
    of units of `mode` returned. `lines` and `chars` are the first and last one touched, "a-b" ("0-0" if
    empty). `continued`: it starts in the middle of a line. `truncated`: it ends before the end of its last
    line. `eof`: no text follows it, now or later; a broken content has no EOF, see `state` and `reason`.
    `chain` is set at the EOF of a pipeline's output.

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
    """A line near a hit: its 1-based number and its text without LF. `left_out` is the number of characters
    missing at the end of a very long line."""

    line: int
    text: str
    left_out: int = 0


class Hit(Record, frozen=True, kw_only=True):
    """One matching line: its 1-based number, its text without LF, the range "a-b" of the first match in
    characters of the content ("0-0" for an empty match), and the lines around it.

    `line_start` is the character of the content at which the line, or the searched part of it, begins.
    `column` is where the first match begins in `text`, 1-based. `text` is the whole line; of a line longer
    than 2000 characters, only a part around the match: `left_out` is the number of characters missing before
    and after it.
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
    """The result of a search. `matches` counts the matching lines of the whole range; `hits` holds the first
    `shown` of them: up to `max_matches`, or fewer if their text exceeds 8 million characters.

    `total_hits` counts the matches in all these lines, of which a line may have several; a line of empty
    matches counts as one. If `hits_are_exact` is False there are more: those of a pattern that is no plain
    text are counted up to some 50 000.
    """

    fd: str
    pattern: str
    hits: tuple[Hit, ...]
    shown: int
    matches: int
    total_hits: int
    lines_searched: int
    hits_are_exact: bool = True


class Comparison(Record, frozen=True, kw_only=True):
    """A comparison of two texts: how many lines of `a` are removed, and how many added, to make it `b`."""

    a: str
    b: str
    removed: int
    added: int

    @property
    def is_equal(self) -> bool:
        """Return whether the texts are the same."""
        return not self.removed and not self.added


class Export(Record, frozen=True, kw_only=True):
    """A finished export: `char_count` characters were written (0 of bytes); the file now has `size_bytes`."""

    fd: str
    file_path: str
    mode: Literal["write", "append"]
    char_count: int
    size_bytes: int
    kind: ContentKind = "text"


class TokenUsage(Record, frozen=True, kw_only=True):
    """Tokens that models have counted. `input_tokens` is all that was sent to them, `cache_read_tokens` and
    `cache_write_tokens` the parts of it that were read from their prompt cache, or written to it."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_write_tokens: Count = 0

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(**{each: getattr(self, each) + getattr(other, each) for each in TOKEN_COUNTS})


TOKEN_COUNTS = TokenUsage.__struct_fields__


class ModelPrice(Record, frozen=True, kw_only=True):
    """Prices of a model: of a million tokens, in any currency. `cache_read` and `cache_write` are
    those of input that was read from the provider's prompt cache or written to it, by default as other
    input."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    currency: str = ""

    def cost(self, usage: TokenUsage) -> float:
        """Return what these tokens cost.

        >>> price = ModelPrice(input=3, output=15, cache_read=0.3, cache_write=3.75)
        >>> price.cost(TokenUsage(input_tokens=1_000_000, output_tokens=100_000, cache_read_tokens=900_000))
        2.07
        """
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        total = (
            (usage.input_tokens - read - written) * self.input
            + read * (self.input if self.cache_read is None else self.cache_read)
            + written * (self.input if self.cache_write is None else self.cache_write)
            + usage.output_tokens * self.output
        )
        return round(total / 1_000_000, 6)


class AskCounts(Record, frozen=True, kw_only=True):
    """The asks of a tool call of a process: how many there are, how many have an answer, and how many of
    these have an error as their answer."""

    total: Count = 0
    done: Count = 0
    failed: Count = 0

    def __str__(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"asks {self.done} of {self.total}{failed}"


class ProcessRecord(TokenUsage, frozen=True, kw_only=True):
    """One process as stored in Redis. `program` is an agent's program, or the commands of a pipeline.
    `attempt` counts the claims by workers, `losses` those that were lost; `lease_until` is when the current
    lease expires, `trouble` what blocks the process, such as errors of the model. `outputs` are the
    descriptors, in its parent's table, of the streams it was created to write: an agent's text; for a
    pipeline (`kind`) output, stderr, and each tee; a process of kind `asks` asks a model for its parent, and
    is not counted in the processes of its tree: `call` is the tool call whose questions it asks. Views show
    all such processes of a call as one, with the counts of its `asks`. `task` is the first line of an agent's
    task; a process that holds the texts of questions has that of the last one. The tokens are those of an
    agent's own answers, `price` is what its program says of the model."""

    id: str
    state: ProcessState
    program: str | None = None
    task: str | None = None
    parent: str | None = None
    attempt: Count = 0
    losses: Count = 0
    worker: str | None = None
    lease_until: Moment | None = None
    trouble: str | None = None
    waiting_for: tuple[str, ...] = ()
    kind: Literal["pipeline", "asks"] | None = None
    outputs: tuple[str, ...] = ()
    exit_code: Total | None = None
    reason: str | None = None
    next_fd: Count = 1
    next_child: Count = 1
    started_at: Moment | None = None
    ended_at: Moment | None = None
    price: ModelPrice | None = None
    call: str | None = None
    asks: AskCounts | None = None

    @property
    def cost(self) -> float | None:
        """Return what the process has cost; None if its program names no price."""
        return None if self.price is None else self.price.cost(self)


class Unreadable(Record, frozen=True, kw_only=True):
    """A record that was skipped because it cannot be read: what it is, and what is wrong with it."""

    what: str
    problem: str


CountIfSet = Count | msgspec.UnsetType
Days = Annotated[float, msgspec.Meta(ge=0, le=1e6)]

# what happens at limits of trees
_MANY = "`spawn_limit`"
_BEFORE = "`quota_exceeded`, before anything is written"
_SPENT = "the tree's agents end with this reason at their next answer, and no new ones begin"
_TODAY = "the tree's agents fail with this reason"


class TreeLimits(Record, frozen=True, kw_only=True):
    """The limits of one tree, including its root. `tree_depth` counts generations, `tree_live` processes that
    have not ended, `tree_processes` ended ones too; `tree_fds` counts contents, however many descriptors
    share one, and `tree_bytes` their UTF-8 bytes. `retention_days` is how long the tree is kept after its
    last use, 0 for ever. `tree_token_budget` and `tree_model_calls` are of all its agents from its beginning
    on; `python_seconds`, `python_memory` (bytes) and `python_calls` bound each call of run_python. Left out,
    these have no limit.

    >>> proc = store.process("small", limits=fdstore.TreeLimits(tree_bytes=1 << 20))
    >>> store.tree("small").limits.tree_bytes
    1048576
    """

    # a program asks for 1 or more; a ceiling may make 0 of it. What is UNSET is not stored
    tree_depth: Annotated[
        Count, TreeLimit("generations of a tree; the root is one", "depth", least=1, beyond=_MANY)
    ] = 8
    tree_live: Annotated[
        Count, TreeLimit("processes of a tree that have not ended", "live", least=1, beyond=_MANY)
    ] = 64
    tree_processes: Annotated[
        Count, TreeLimit("processes of a tree, ended ones too", "processes", least=1, beyond=_MANY)
    ] = 1000
    tree_fds: Annotated[
        Count, TreeLimit("contents of a tree", "fds", note="shared descriptors cost nothing")
    ] = 10_000
    tree_bytes: Annotated[
        Count, TreeLimit("stored text of a tree", "bytes", unit="bytes", top="half of maxmemory")
    ] = 4 << 30
    tree_export_bytes: Annotated[
        Count,
        TreeLimit(
            "text that agents of a tree write to files",
            "export_bytes",
            "bytes",
            "exports by people do not count",
            beyond=_BEFORE,
        ),
    ] = 1 << 30
    tree_model_calls: Annotated[
        CountIfSet,
        TreeLimit(
            "answers of models in a tree, in all", "all_model_calls", example=1000, beyond=_SPENT, budget=True
        ),
    ] = msgspec.UNSET
    tree_token_budget: Annotated[
        CountIfSet,
        TreeLimit(
            "tokens of models in a tree, in all",
            "all_tokens",
            "tokens",
            "in and out",
            10_000_000,
            beyond=_SPENT,
            budget=True,
        ),
    ] = msgspec.UNSET
    tree_model_calls_per_day: Annotated[
        Count, TreeLimit("answers of models in a tree, a day", "model_calls", beyond=_TODAY)
    ] = 20_000
    tree_tokens_per_day: Annotated[
        Count,
        TreeLimit(
            "tokens of models in a tree, a day", "tokens", "tokens", "in, out and cached", beyond=_TODAY
        ),
    ] = 1_000_000_000
    retention_days: Annotated[Days, about("Days that the tree is kept after its last use; 0 for ever.")] = 7
    python_seconds: Annotated[
        CountIfSet, TreeLimit("seconds of processor time of a call of run_python", least=1)
    ] = msgspec.UNSET
    python_memory: Annotated[
        CountIfSet, TreeLimit("memory of a call of run_python", unit="bytes", least=16 << 20)
    ] = msgspec.UNSET
    python_calls: Annotated[CountIfSet, TreeLimit("what a call of run_python may read, ask and so on")] = (
        msgspec.UNSET
    )


# what a process, or a content, adds to counts of its tree
_LIVE = CountOf("processes", lambda process: process.state not in ENDED)
_COLD = CountOf("contents", lambda content: bool(content.tier))
_COLD_BYTES = CountOf("contents", lambda content: (content.tier and content.bytes) or 0)


class TreeCounts(Record, frozen=True, kw_only=True):
    """The times and counts of a tree. `fds` counts contents, as the limit does, `bytes` their UTF-8 bytes,
    `processes` all processes and `live` those that have not ended, without those of kind `asks`. Of the
    contents `cold_fds`, with `cold_bytes`, are in the object store."""

    id: str
    created_at: Moment
    used_at: Moment
    bytes: Total
    fds: Total
    processes: Annotated[Total, CountOf("processes")]
    live: Annotated[Total, _LIVE]
    cold_fds: Annotated[Count, _COLD] = 0
    cold_bytes: Annotated[Count, _COLD_BYTES] = 0


class TreeRecord(TreeCounts, frozen=True, kw_only=True):
    """One tree: its counts, as in `TreeCounts`, its usage and limits, and its processes by creation time.
    `export_bytes` is the total that `fd_to_file` has written; `model_calls` and `tokens` are those of the UTC
    day `usage_day` (days since 1970, by the Redis clock), the last day with a model call; `all_model_calls`
    and `all_tokens` those of all days. `unreadable` lists the processes missing in `members` because their
    records are damaged."""

    limits: TreeLimits
    export_bytes: Count = 0
    usage_day: Annotated[int, msgspec.Meta(ge=0, lt=MAX_MOMENT_S // 86_400)] = 0
    model_calls: Count = 0
    tokens: Count = 0
    all_model_calls: Count = 0
    all_tokens: Count = 0
    members: tuple[ProcessRecord, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def depth(self) -> int:
        """The generations of processes."""
        return max((member.id.count(".") + 1 for member in self.members), default=0)

    @property
    def usage(self) -> TokenUsage:
        """The tokens of `members` together, of each kind."""
        return sum(self.members, start=TokenUsage())


class DroppedTree(Record, frozen=True, kw_only=True):
    """A tree that was dropped: the number of contents removed, and the processes cancelled for it."""

    tree: str
    contents: int
    cancelled: tuple[str, ...] = ()


class Survey(Record, frozen=True, kw_only=True):
    """All readable trees, by name, and the unreadable records: whole trees, or single processes."""

    trees: list[TreeRecord]
    unreadable: list[Unreadable]


prepare(Descriptor, TreeLimits, ProcessState)
