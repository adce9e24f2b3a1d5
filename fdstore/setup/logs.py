"""Formats of log messages: text for people, JSON for machines. Both are one line a message.

    text   2026-11-22 16:00:00,123 INFO fdstore.agent: triage.1 exited: program expert, exit code 0, 1.2 s
    json   {"time": "2026-11-22T16:00:00.123Z", "level": "info", "logger": "fdstore.agent", "pid": 4711,
            "message": "triage.1 exited: ...", "process": "triage.1", "attempt": 1, "duration_s": 1.2, ...}

Ids, reasons and errors in messages come from models, texts and Redis, so control characters are escaped: a
message is one line, and a traceback contains only its line breaks (in JSON, none).

The facts of a message are fields of JSON: those passed with it (`facts`), and those of the block that logs
(`about`): the process, its program and its attempt.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType, TracebackType
from typing import Any, Literal

from fdstore.text.layout import show_controls

LogFormat = Literal["text", "json"]

_Failure = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]

_about: ContextVar[Mapping[str, Any]] = ContextVar("fdstore_log_facts", default=MappingProxyType({}))


def facts(**named: Any) -> dict[str, dict[str, Any]]:
    """Return the argument `extra` of a log call that adds these fields to the message. None adds nothing.

    >>> facts(process="triage.1", reason=None)
    {'facts': {'process': 'triage.1'}}
    """
    return {"facts": {name: value for name, value in named.items() if value is not None}}


@contextmanager
def about(**named: Any) -> Iterator[None]:
    """Add these fields to every message that this thread or task logs in the block."""
    known = {name: value for name, value in named.items() if value is not None}
    token = _about.set({**_about.get(), **known})
    try:
        yield
    finally:
        _about.reset(token)


class VisibleFormatter(logging.Formatter):
    """Formatter that escapes control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = show_controls(record.message, keep="\t")
        return super().formatMessage(record)

    def formatException(self, ei: _Failure) -> str:
        return show_controls(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    """Formatter that writes each message as one JSON object, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        fields |= {**_about.get(), **getattr(record, "facts", {})}
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def formatter(log_format: LogFormat, text: str) -> logging.Formatter:
    """Return the formatter of a format; `text` is the %-pattern of text messages."""
    return JsonFormatter() if log_format == "json" else VisibleFormatter(text)


def log_to_stderr(level: str = "INFO", log_format: LogFormat = "text", **_: Any) -> None:
    """Log to stderr: fdstore from `level` up, other packages from WARNING up. A second call changes nothing.

    For a worker. Replaces the set-up of Celery, which would take over the root logger. Call it before the SDK
    of models is imported, which sets up the root logger itself if `$ANTHROPIC_LOG` is set.
    """
    if logging.getLogger().handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(log_format, "%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("fdstore").setLevel(level.upper())
    if log_format == "json":
        logging.captureWarnings(True)
