r"""Characters beyond 16 bits as JSON escapes them: two halves, a high surrogate and a low one.

Where a text comes in several pieces of JSON, one half may come with each. A half that stays alone is no text:
UTF-8 cannot hold it.
"""

from __future__ import annotations


def join_surrogates(text: str) -> str:
    r"""Return `text` with each pair of halves as its character; a half that is alone stays one.

    >>> join_surrogates("\ud83d\ude00 \ud83d") == "\U0001f600 \ud83d"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


class SurrogateText:
    r"""Joins the halves of one text that comes piece by piece. `rest` is a first half whose second may come.

    >>> text = SurrogateText()
    >>> text.feed("Hi \ud83d"), text.rest == "\ud83d", text.feed("\ude00!") == "\U0001f600!", text.rest
    ('Hi ', True, True, '')
    """

    def __init__(self) -> None:
        self.rest = ""

    def feed(self, piece: str) -> str:
        """The text that is complete with `piece`."""
        text = join_surrogates(self.rest + piece)
        self.rest = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        return text[: len(text) - len(self.rest)]

    def end(self) -> str:
        """The rest, which is none from now on."""
        rest, self.rest = self.rest, ""
        return rest
