"""Every key that fdstore creates: its pattern, its content, and what deletes it.

    pattern (after the prefix)           type    holds                                deleted by
    trees                                zset    tree -> earliest collection time     collect
    limits                               hash    ceiling -> the operator's value      the operator
    exports                              hash    bytes exported today, by tree        expires (2 days)
    logins                               hash    hash of a token -> what it permits   the operator
    let_pass                             hash    problem of `doctor` -> why accepted  the operator
    token_uses                           hash    hash of a token -> its last use      the operator
    workers                              zset    worker -> deadline of its heartbeat  the sweep
    workers:commands                     hash    worker -> its sandbox for commands   the sweep
    workers:agents                       hash    worker -> taken, or why it runs none the sweep
    workers:permissions                  hash    worker -> what its operator allows   the sweep
    workers:load                         hash    worker -> its slots, what it runs    the sweep
    sweeper                              string  the worker that sweeps now           expires (4 s)
    sweeper:observed                     hash    what sweepers saw of Redis' clock    expires (1 h)
    cold:trees                           set     trees that may have objects          the sweep
    cold:store                           string  the id of this store in the names    never
                                                 of its objects
    totals                               hash    sums over all trees, by the sweep    expires (1 d)
    {triage}                             hash    the tree: usage, limits, format      collect
    {triage}:processes                   zset    its processes, by creation time      collect
    {triage}:contents                    set     its contents (triage/3)              last release
    {triage}:collecting                  set     contents of a tree being removed     collect
    {triage}:earlier:numbers             hash    next numbers when last removed       expires (365 d; of a
                                                                                      generated name 1 d)
    {triage}:leases                      zset    process -> when the sweep checks it  its end
    {triage}:writers                     zset    open content -> when to check it     its end
    {triage}:programs                    hash    digest -> a bundle of programs       collect
    {triage}:search:words                zset    `word kind process [fd]`: what search finds, collect
                                                 all with the score 0 (`word_search`)
    {triage}:questions                   zset    triage.1/7 -> when asked: those for a     answer; its end
                                                 person that are open (`people`)
    {triage}:staging                     hash    OP -> what is being stored there     commit; expires (15 min)
    {triage}:staging:OP:pages, :index    hash    a content being stored               commit; expires (15 min)
    {triage}:staging:OP:sums             string  checksums of one that becomes cold   commit; expires (15 min)
    {triage}:cold:objects                zset    objects to delete -> from when       the sweep
    {triage}:cold:wanted                 set     cold contents to bring back          the sweep; expires (1 h)
    {triage}:op:OP                       string  reply of a script, for retries       expires (30 s)
    {triage}:triage.1                    hash    a process                            collect
    {triage}:triage.1:fds                hash    its table: fd:3, name:KEY -> triage/3 its end
    {triage}:triage.1:names              zset    the KEY of each name:KEY, in order   its end
    {triage}:triage.1:writes             set     numbers of open contents it writes   their end
    {triage}:triage.1:calls              hash    tool-call id -> idempotency record   collect
    {triage}:triage.1:journal            list    its conversation, one JSON a record  collect
    {triage}:triage.1:saved              hash    kept out, read back (savings)        collect; expires (365 d)
    {triage}:triage.1:python             hash    variables of its programs, the call  collect
                                                 that runs (`python_state`)
    {triage}:triage.1:asks               hash    questions of its programs to a model,  collect
                                                 and the answers (`asks`)
    {triage}:triage.1:asks:queue         zset    those that no lane has taken          collect
    {triage}:triage.1:questions          hash    its questions to a person, and the        collect
                                                 answers (`people`)
    {triage}:triage.1:events             stream  its end, for waiting clients         expires (60 s after)
    {triage}:triage:fd:3                 hash    a content's metadata                 last release
    {triage}:triage:fd:3:pages           hash    page number -> text; the rest of a   last release
                                                 large page in `3+` (`page_fields`)
    {triage}:triage:fd:3:index           hash    first page of a group -> counts; if  last release
                                                 short, in the metadata (`index`);
                                                 of a cold text packed
                                                 (`packed_index`), up to 256 pages in
                                                 `sums` (`checksums`)
    {triage}:triage:fd:3:holders         set     processes that hold it; none if its  last release
                                                 producer alone holds what it stored
    {triage}:triage:fd:3:lent            hash    pages during a large append          append
                                                 (`scripts.hset_if_accepted`)
    {triage}:triage:fd:3:sums            string  BLAKE2b of each page, if it is cold  last release
                                                 (`checksums`): then it has no pages
    {triage}:triage:fd:3:reads           string  reads of it while it is cold         expires (60 s)
    {triage}:triage:fd:3:events          stream  its wake-ups                         last release;
                                                                                      60 s after its end

All keys of a tree share the hash tag `{tree}`, so a tree lives in one slot of a Redis Cluster and a
script may access all of it. Process ids contain no braces and no colons, so keys are unambiguous. The id
of a content names its creator: `triage/3` is number 3 of process `triage`. The number of a named content
is the time of its creation in microseconds.

`format` of a tree (`record_format.FORMAT`) says which versions can read it. All times are by the clock of
Redis. Nothing read from these keys is trusted: see `record_format`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TypeVar

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.wire.operation import Value

_ROOT = r"[a-z0-9][a-z0-9_-]{0,47}"
_ROOT_ID = re.compile(_ROOT)
_PROCESS_ID = re.compile(_ROOT + r"(?:\.[1-9][0-9]{0,15})*")
_NUMBER = re.compile(rb"[1-9][0-9]{0,15}")
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{1,64}")

AT_ONCE = 500
"""The number of keys or records that one request asks for."""

T = TypeVar("T")


def in_bounded_pieces(
    fields: Iterable[tuple[Value, bytes]], most: int, most_bytes: int
) -> Iterator[list[Value]]:
    """Split fields into lists of names and values, of at most `most` fields. Each but the last has about
    `most_bytes`, or more if a value is longer.

    >>> list(in_bounded_pieces([("a", b"12"), ("b", b"3"), ("c", b"4"), ("d", b"5")], 2, 2))
    [['a', b'12'], ['b', b'3', 'c', b'4'], ['d', b'5']]
    """
    piece: list[Value] = []
    size = 0
    for name, value in fields:
        piece += (name, value)
        size += len(value)
        if size >= most_bytes or len(piece) >= 2 * most:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def in_pieces(items: Iterable[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    """Split the items into lists of at most `size`.

    >>> list(in_pieces("abc", 2))
    [['a', 'b'], ['c']]
    """
    left = iter(items)
    while piece := list(islice(left, size)):
        yield piece


RESERVED = frozenset(
    {"processes", "contents", "collecting", "leases", "writers", "programs", "questions", "staging"}
)
"""Names that no root may have: the key of its record would be one of its tree's own."""


def check_root(name: object) -> str:
    """Return `name` if it is a valid name of a root process. Raises `InvalidArgument`."""
    if isinstance(name, str) and _ROOT_ID.fullmatch(name):
        if name in RESERVED:
            raise InvalidArgument(
                "process", f"{name} is a key of every tree; choose another name, e.g. {name}-1"
            )
        return name
    if isinstance(name, str) and _PROCESS_ID.fullmatch(name):
        tree = name.partition(".")[0]
        raise InvalidArgument("process", f"{name} is a child; its tree has the name of its root, {tree}")
    raise InvalidArgument(
        "process", f"{quoted(name)} is not a process name; use 1-48 of a-z, 0-9, _ and -, e.g. triage"
    )


def is_root(name: bytes) -> bool:
    """Return whether `name` is a valid name of a tree."""
    text = name.decode("ascii", "replace")
    return _ROOT_ID.fullmatch(text) is not None and text not in RESERVED


def check_process(name: object) -> str:
    """Return `name` if it is a valid process id: `triage` or `triage.1.2`. Raises `InvalidArgument`."""
    if isinstance(name, str) and _PROCESS_ID.fullmatch(name):
        return name
    raise InvalidArgument("process", f"{quoted(name)} is not a process id, e.g. triage or triage.1.2")


def is_process(name: str) -> bool:
    """Return whether `name` is a valid process id."""
    return _PROCESS_ID.fullmatch(name) is not None


def check_prefix(prefix: object) -> str:
    """Return `prefix` if it is a valid key prefix. Raises `InvalidArgument`."""
    if isinstance(prefix, str) and _PREFIX.fullmatch(prefix):
        return prefix
    raise InvalidArgument("prefix", f"{quoted(prefix)} is not a key prefix; use letters, digits, _ . : -")


class TreeKeys(msgspec.Struct, frozen=True, dict=True):
    """The keys of a tree that are not of one process or content. `tree` is the name of its root process."""

    prefix: str
    tree: str

    @cached_property
    def record(self) -> str:
        return f"{self.prefix}:{{{self.tree}}}"

    @property
    def processes(self) -> str:
        return f"{self.record}:processes"

    @property
    def contents(self) -> str:
        return f"{self.record}:contents"

    @property
    def collecting(self) -> str:
        """Its contents still to be deleted while the tree is being removed."""
        return f"{self.record}:collecting"

    @property
    def earlier_numbers(self) -> str:
        """The numbers that a later tree of this name begins with, kept when the tree is removed."""
        return f"{self.record}:earlier:numbers"

    @property
    def leases(self) -> str:
        return f"{self.record}:leases"

    @property
    def writers(self) -> str:
        return f"{self.record}:writers"

    @property
    def programs(self) -> str:
        return f"{self.record}:programs"

    @property
    def questions(self) -> str:
        """Its open questions to a person, see `people`."""
        return f"{self.record}:questions"

    @property
    def words(self) -> str:
        """The words of its tasks, answers, errors and sources, see `word_search`."""
        return f"{self.record}:search:words"

    @property
    def trees(self) -> str:
        """The index of all trees; like the next two keys, it is shared by all trees."""
        return f"{self.prefix}:trees"

    @property
    def ceilings(self) -> str:
        """Upper bounds for all trees. Clients read it, only the operator writes it."""
        return f"{self.prefix}:limits"

    @property
    def exports(self) -> str:
        """Bytes that all trees exported today; counted only while there is a ceiling for it."""
        return f"{self.prefix}:exports"

    @property
    def staged(self) -> str:
        """Contents being stored, except those stored in a single round trip."""
        return f"{self.record}:staging"

    def staging(self, op: str) -> tuple[str, str]:
        """Return the keys of a content's pages and index before it becomes visible."""
        return f"{self.record}:staging:{op}:pages", f"{self.record}:staging:{op}:index"

    def staged_sums(self, op: str) -> str:
        """Return the key of the checksums of a content that is about to become cold."""
        return f"{self.record}:staging:{op}:sums"

    @property
    def unneeded(self) -> str:
        """Objects that no content needs, or that are being uploaded, by when to delete them
        (`cold.unneeded`)."""
        return f"{self.record}:cold:objects"

    @property
    def wanted(self) -> str:
        """Large cold contents that are read again and again, for the sweep to bring back."""
        return f"{self.record}:cold:wanted"

    @property
    def cold_trees(self) -> str:
        """The trees that may have objects, existing or removed ones."""
        return f"{self.prefix}:cold:trees"

    @property
    def cold_store(self) -> str:
        """The id of the store, in the names of its objects."""
        return f"{self.prefix}:cold:store"

    def answer(self, op: str) -> str:
        """Return the key where a script stores its reply, in case the reply is lost."""
        return f"{self.record}:op:{op}"


class ProcessKeys(msgspec.Struct, frozen=True, dict=True):
    """The keys of one process."""

    tree: TreeKeys
    process: str

    @cached_property
    def record(self) -> str:
        return f"{self.tree.record}:{self.process}"

    @cached_property
    def fds(self) -> str:
        return f"{self.record}:fds"

    @property
    def names(self) -> str:
        return f"{self.record}:names"

    @cached_property
    def calls(self) -> str:
        return f"{self.record}:calls"

    @cached_property
    def journal(self) -> str:
        return f"{self.record}:journal"

    @property
    def saved(self) -> str:
        """Return what was kept out of a context and read back, see `savings`."""
        return f"{self.record}:saved"

    @property
    def python(self) -> str:
        """Return the key of the session of its programs, see `python_state`."""
        return f"{self.record}:python"

    @property
    def asks(self) -> str:
        """Return the key of the questions of its programs to a model, see `asks`."""
        return f"{self.record}:asks"

    @property
    def asks_queue(self) -> str:
        return f"{self.asks}:queue"

    @property
    def questions(self) -> str:
        """Return the key of its questions to a person, see `people`."""
        return f"{self.record}:questions"

    @property
    def events(self) -> str:
        return f"{self.record}:events"


def process_keys(prefix: str, process: str) -> ProcessKeys:
    """Return the keys of a process, by its id.

    >>> process_keys("fdstore", "triage.1").fds
    'fdstore:{triage}:triage.1:fds'
    """
    return ProcessKeys(TreeKeys(prefix, check_process(process).partition(".")[0]), process)


def member_of(tree: TreeKeys, name: bytes) -> ProcessKeys | None:
    """Return the keys of a process named in a key of this tree, or None if this is not a process of the tree.

    >>> member_of(TreeKeys("fdstore", "triage"), b"triage.1").process, member_of(TreeKeys("x", "a"), b"b.1")
    ('triage.1', None)
    """
    process = name.decode("ascii", "replace")
    if not _PROCESS_ID.fullmatch(process) or process.partition(".")[0] != tree.tree:
        return None
    return ProcessKeys(tree, process)


def producer_of(content: bytes) -> bytes:
    """Return the process that created a content, by its id.

    >>> producer_of(b"triage.1/3")
    b'triage.1'
    """
    return content.rpartition(b"/")[0]


def is_content(tree: TreeKeys, name: bytes) -> bool:
    """Return whether `name` is a valid id of a content of this tree.

    >>> is_content(TreeKeys("fdstore", "triage"), b"triage.1/3")
    True
    """
    process, slash, number = name.rpartition(b"/")
    return bool(slash) and _NUMBER.fullmatch(number) is not None and member_of(tree, process) is not None


class ContentKeys(msgspec.Struct, frozen=True):
    """The keys of one content."""

    record: str

    @property
    def pages(self) -> str:
        return f"{self.record}:pages"

    @property
    def index(self) -> str:
        return f"{self.record}:index"

    @property
    def lent(self) -> str:
        """Holds the pages during a large append; readers never use it."""
        return f"{self.record}:lent"

    @property
    def sums(self) -> str:
        """Checksums of the pages of a cold content, and its index if it is short, see `objects.checksums`."""
        return f"{self.record}:sums"

    @property
    def reads(self) -> str:
        """The number of reads of a cold content in this minute."""
        return f"{self.record}:reads"

    @property
    def holders(self) -> str:
        return f"{self.record}:holders"

    @property
    def events(self) -> str:
        return f"{self.record}:events"


def content_keys(tree: TreeKeys, content: str) -> ContentKeys:
    """Return the keys of a content, by its id.

    >>> content_keys(TreeKeys("fdstore", "triage"), "triage.1/3").pages
    'fdstore:{triage}:triage.1:fd:3:pages'
    """
    process, _, number = content.partition("/")
    return ContentKeys(f"{tree.record}:{process}:fd:{number}")
