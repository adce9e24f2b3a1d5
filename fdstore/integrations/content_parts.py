"""Content blocks of a framework and what is shown instead of their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def shown_blocks(
    blocks: Sequence[Any],
    parts: Sequence[str | bytes | None],
    shown: Sequence[str | None],
    text_block: Callable[[str], Any],
) -> list[Any]:
    """Return the blocks as the model is to see them: long texts replaced, a stored picture after the text
    that names it. What stays as it is are the same objects.

    parts       of each block its text, the bytes of a picture, or None for a block that stays
    shown       what `Toolset.offload_parts` returned for the parts
    text_block  makes a block of a text

    >>> shown_blocks(["long", "IMAGE", "short"], ["long", b"GIF", "short"], ["fd:1", "fd:2", "short"], str)
    ['fd:1', 'fd:2', 'IMAGE', 'short']
    """
    found: list[Any] = []
    for block, part, text in zip(blocks, parts, shown, strict=True):
        if text is None or text == part:
            found.append(block)
        elif isinstance(part, str):
            found.append(text_block(text))
        else:
            found += [text_block(text), block]
    return found
