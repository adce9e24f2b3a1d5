"""The output that a call of the interpreter has printed, up to a limit."""

from __future__ import annotations


class Printed:
    """Printed text. What is past the first `limit` characters is not kept.

    >>> printed = Printed(5, "one")
    >>> printed.add("t"), printed.add("wo"), printed.text
    (True, False, 'onetw')
    """

    def __init__(self, limit: int, text: str = "") -> None:
        self._pieces = [text]
        self._room = limit - len(text)

    @property
    def text(self) -> str:
        """All of it, joined once and not for each `add`."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def add(self, text: str) -> bool:
        """Add a text. False if it is longer than the room that was left."""
        self._pieces.append(text[: max(self._room, 0)])
        self._room -= len(text)
        return self._room >= 0
