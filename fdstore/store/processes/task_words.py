"""The words of a task, and of the errors of calls, by which a process is found (`store.views.word_search`).

A task is the first record of a journal (`tools.process_task` defines it): the user's `query` to an agent, the
`prompt` of a fork, or the `commands` of a pipeline. An error of a call is the `content` of a `result` that
`is_error`.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec

from fdstore.text.words import joined_words


def task_words(record: str) -> str:
    """Return the words of a task (JSON) as scripts take them; none of a record that has another form.

    >>> task_words('{"kind": "brief", "query": "Count the lines.", "preload": ["fd:1"]}')
    'count the lines'
    """
    return joined_words(task_text(record))


def error_words(records: Iterable[str]) -> str:
    """Return the words of the errors of calls among journal records (JSON) as scripts take them.

    >>> error_words(['{"kind":"result","call":"a","content":"no such file","is_error":true}'])
    'no such file'
    """
    text = error_text(records)
    return joined_words(text) if text else ""


def task_text(record: str | bytes) -> str:
    """Return the text of a task (JSON); "" of a record that has another form."""
    with suppress(ValueError, RecursionError):
        task = msgspec.json.decode(record)
        if isinstance(task, dict):
            parts = (task.get(name) for name in ("query", "prompt", "commands"))
            return "\n".join(text for part in parts for text in _texts(part))
    return ""


def error_text(records: Iterable[str]) -> str:
    """Return the texts of the errors of calls among journal records (JSON), in lines."""
    errors = []
    for record in records:
        if '"is_error":true' not in record:
            continue
        with suppress(ValueError, RecursionError):
            result = msgspec.json.decode(record)
            if isinstance(result, dict) and result.get("kind") == "result" and result.get("is_error"):
                errors += _texts(result.get("content"))
    return "\n".join(errors)


def _texts(part: Any) -> list[str]:
    """Return the text, those of blocks, or the words of commands."""
    match part:
        case str():
            return [part]
        case list():
            return [text for each in part for text in _texts(each)]
        case {"type": "text", "text": str(text)}:
            return [text]
        case _:
            return []
