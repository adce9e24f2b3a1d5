"""Read the texts in which a search has found words: an excerpt of each, with the words marked.

A task is the first record of a journal. An answer, and the reason of an end, are in the record of the
process, the errors of its calls in its journal, of which the last records are read, those of its asks among
their answers, of which some are read. A source is in the record of the content. Of a long answer the first
page is read. What is gone, damaged or further back has no excerpt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.model.ends import in_words
from fdstore.store.contents.page_fields import fields_of, joined
from fdstore.store.keys import ContentKeys, ProcessKeys, TreeKeys, content_keys, is_content, process_keys
from fdstore.store.processes.asks import errors_command, errors_in
from fdstore.store.processes.task_words import error_text, task_text
from fdstore.store.record_format import replies_or_damage
from fdstore.store.word_places import WordPlace
from fdstore.text.excerpts import WordExcerpt, excerpt_around
from fdstore.wire.operation import Batch, Operation

ERROR_RECORDS = 30
"""Journal records that are read for an error of a call: the last ones."""

MAX_JOURNALS = 20
"""Processes whose journals are read for that; others have the reason of their end alone."""


class FoundPlace(msgspec.Struct, frozen=True):
    """A place with words, and the id of the content if it is a source."""

    place: WordPlace
    content: bytes


def read_excerpts(prefix: str, query: str, places: Sequence[FoundPlace]) -> Operation[list[WordExcerpt]]:
    """Return an excerpt for each place. One round trip, two more for long answers, none without places."""
    if not places:
        return []
    keys = [process_keys(prefix, each.place.process) for each in places]
    reads: list[Batch] = []
    journals = 0
    for each, of in zip(places, keys, strict=True):
        journals += each.place.kind == "error"
        reads.append(_reads(each, of, with_journal=journals <= MAX_JOURNALS))
    replies = iter((yield from replies_or_damage([command for batch in reads for command in batch])))
    texts: list[list[str]] = []
    long: dict[int, tuple[ProcessKeys, str]] = {}
    for number, (each, of, batch) in enumerate(zip(places, keys, reads, strict=True)):
        read = [next(replies) for _ in batch]
        texts.append(list(_texts(each.place, read)))
        if each.place.kind == "answer" and not any(texts[-1]) and (fd := _answer_fd(read)):
            parent, _, _ = of.process.rpartition(".")
            long[number] = (process_keys(prefix, parent or of.process), fd)
    for number, text in (yield from _first_pages(long)).items():
        texts[number] = [text]
    return [_best(query, each) for each in texts]


def _reads(found: FoundPlace, keys: ProcessKeys, *, with_journal: bool) -> Batch:
    match found.place.kind:
        case "task":
            return [("LRANGE", keys.journal, 0, 0)]
        case "answer":
            return [("HMGET", keys.record, "answer", "answer_fd")]
        case "error":
            more: Batch = [("LRANGE", keys.journal, -ERROR_RECORDS, -1), errors_command(keys.asks)]
            return [("HMGET", keys.record, "reason"), *(more if with_journal else [])]
        case "source":
            content = _content(keys.tree, found.content)
            return [] if content is None else [("HMGET", content.record, "source")]


def _texts(place: WordPlace, replies: list[object]) -> Iterator[str]:
    """Yield the texts in which the words may be, the likeliest first."""
    match place.kind, replies:
        case "task", [[bytes(record)]]:
            yield task_text(record)
        case "answer", [[bytes(answer), _]]:
            yield _text(answer)
        case "error", [fields, *more]:
            reason = _text(fields[0]) if isinstance(fields, list) and fields[0] else ""
            yield from (in_words(reason), reason)
            if more:
                records, asks = more
                if isinstance(records, list):
                    yield from (error_text([_text(each)]) for each in reversed(records))
                yield from errors_in(asks)
        case "source", _:
            for each in replies:
                if isinstance(each, list) and each[0]:
                    yield _text(each[0])
            yield (place.fd or "").partition(":")[2]


def _answer_fd(replies: list[object]) -> str:
    match replies:
        case [[_, bytes(fd)]]:
            return _text(fd)
    return ""


def _first_pages(answers: dict[int, tuple[ProcessKeys, str]]) -> Operation[dict[int, str]]:
    """Return the beginnings of long answers, each a descriptor of a process."""
    if not answers:
        return {}
    names = yield from replies_or_damage([("HGET", holder.fds, fd) for holder, fd in answers.values()])
    there: dict[int, ContentKeys] = {}
    for number, (holder, _), name in zip(answers, answers.values(), names, strict=True):
        if isinstance(name, bytes) and (content := _content(holder.tree, name)) is not None:
            there[number] = content
    pages = yield from replies_or_damage([("HMGET", each.pages, *fields_of((1,))) for each in there.values()])
    found = {}
    for number, values in zip(there, pages, strict=True):
        if not isinstance(values, DamagedRecord):
            found[number] = _text(joined(values)[0] or b"")
    return found


def _content(tree: TreeKeys, name: bytes) -> ContentKeys | None:
    return content_keys(tree, name.decode()) if is_content(tree, name) else None


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")


def _best(query: str, texts: Iterable[str]) -> WordExcerpt:
    """Return the excerpt with most marks; the first one, if several have."""
    excerpts = [excerpt_around(query, text) for text in texts if text]
    return max(excerpts, key=lambda each: len(each.marks), default=WordExcerpt())
