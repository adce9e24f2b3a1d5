"""The name of the process that belongs to a thread of an agent framework."""

from __future__ import annotations

from hashlib import sha256

from fdstore.store.keys import is_root
from fdstore.store.process_names import MAX_CHARS, process_name_of

HASH_CHARS = 16
"""The characters of the SHA-256 of an id in the name that is made of it: 64 bits."""


def process_name_of_thread(thread: str) -> str:
    """Return the name of the process of a thread, a session or a run of a framework, by its id.

    An id that is a valid name (1-48 of a-z, 0-9, _ and -, the first a letter or a digit) is the name. Of any
    other, the name has what is valid of it and the beginning of its SHA-256, so that two ids never share a
    process.

    >>> process_name_of_thread("chat-7"), process_name_of_thread("Chat 7")
    ('chat-7', 'chat-7-415c3e0e38802b9c')
    """
    encoded = thread.encode("utf-8", "backslashreplace")
    if is_root(encoded):
        return thread
    digest = sha256(encoded).hexdigest()[:HASH_CHARS]
    return f"{process_name_of(thread)[: MAX_CHARS - HASH_CHARS - 1].rstrip('-_')}-{digest}"
