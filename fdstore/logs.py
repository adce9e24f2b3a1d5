"""Log lines that a terminal or a reader of logs can trust.

Ids, reasons and errors in them come from anywhere: models, texts, Redis. So a message is one line
without control characters, and a traceback has none but its line breaks.
"""

from __future__ import annotations

import logging
from types import TracebackType

from fdstore.text.layout import show_controls

_Failure = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class VisibleFormatter(logging.Formatter):
    """A formatter that shows control characters escaped."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = show_controls(record.message, keep="\t")
        return super().formatMessage(record)

    def formatException(self, ei: _Failure) -> str:
        return show_controls(super().formatException(ei))
