"""A script of the model for an agent and, separately, for each of its forks."""

from __future__ import annotations

import threading
from typing import Any

from fdstore.testing import Request


def fork_number_of(request: Request) -> int:
    """Return the number of the fork that sent the request, 0 for the original."""
    for result in reversed(request.tool_results()):
        if result.text.startswith("You are copy "):
            return int(result.text.split()[3])
    return 0


class ForkScript:
    """The replies of the model to the original agent and, separately, to each of its forks."""

    def __init__(self, original: list[Any], **forks: list[Any]) -> None:
        self._original = original
        self._copies = {int(name.removeprefix("copy")): replies for name, replies in forks.items()}
        self._taken: dict[int, int] = {}
        self._turn = threading.Lock()

    def __call__(self, request: Request) -> Any:
        number = fork_number_of(request)
        replies = self._original if number == 0 else self._copies[number]
        with self._turn:
            taken = self._taken.get(number, 0)
            self._taken[number] = taken + 1
        return replies[taken]
