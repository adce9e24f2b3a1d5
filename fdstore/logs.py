"""A log formatter that escapes control characters.

Ids, reasons and errors in log messages come from models, texts and Redis. Escaped, a message is one line
without control characters, and a traceback contains only its line breaks.
"""

from __future__ import annotations

import logging
from types import TracebackType

from fdstore.text.layout import show_controls

_Failure = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class VisibleFormatter(logging.Formatter):
    """Formatter that escapes control characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = show_controls(record.message, keep="\t")
        return super().formatMessage(record)

    def formatException(self, ei: _Failure) -> str:
        return show_controls(super().formatException(ei))
