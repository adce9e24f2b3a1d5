"""Count the tokens of a result: with the user's function, or with the estimate."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

from fdstore.errors.description import logged
from fdstore.text.tokens import estimate_tokens

log = logging.getLogger("fdstore.tools")

CountTokens = Callable[[str], int]


class TokenCounter:
    """Counts tokens with a function of the user's, if there is one. If it fails, the estimate counts: a
    result is never lost to it. The first failure is logged. `calibrate` returns the factor of estimates."""

    def __init__(
        self, count: CountTokens | None = None, calibrate: Callable[[], float] | None = None
    ) -> None:
        self._count = count
        self._calibrate = calibrate
        self._has_failed = False

    def calibrated_by(self, calibrate: Callable[[], float]) -> TokenCounter:
        """Return the same counter with estimates that are multiplied by a factor."""
        return TokenCounter(self._count, calibrate)

    def _estimate(self, text: str) -> float:
        return estimate_tokens(text) * (1.0 if self._calibrate is None else self._calibrate())

    def __call__(self, text: str) -> float:
        """Return the tokens of a text."""
        if self._count is None:
            return self._estimate(text)
        counted: Any
        try:
            counted = self._count(text)
        except KeyboardInterrupt:
            raise
        # a tokenizer in Rust may panic, which is no Exception
        except BaseException as error:
            if not self._has_failed:
                said = "count_tokens failed; results are judged by the estimate"
                log.warning(said, exc_info=logged(error))
            self._has_failed = True
            return self._estimate(text)
        if isinstance(counted, bool) or not isinstance(counted, (int, float)) or not 0 <= counted < math.inf:
            if not self._has_failed:
                log.warning("count_tokens returned no number; results are judged by the estimate")
            self._has_failed = True
            return self._estimate(text)
        return counted
