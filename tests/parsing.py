"""Python's parser in a process whose other threads may parse too.

Up to 3.11.7 all calls of it count their depth in one place. If the garbage collector runs during a call, and
what it ends parses or lets another thread parse, the call fails with a SystemError although its source is
right (https://github.com/python/cpython/issues/106905). pytest and Hypothesis parse at any moment.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Callable
from typing import Any

IS_DISTURBED = sys.version_info < (3, 11, 8)
ATTEMPTS = 10


def repeated(parse: Callable[..., Any]) -> Any:
    """Return a function that parses as the given one does, and once more when that was disturbed."""

    @functools.wraps(parse)
    def again(*args: Any, **options: Any) -> Any:
        for _ in range(ATTEMPTS - 1):
            try:
                return parse(*args, **options)
            except SystemError:
                continue
        return parse(*args, **options)

    return again


if IS_DISTURBED:
    ast.parse = repeated(ast.parse)
