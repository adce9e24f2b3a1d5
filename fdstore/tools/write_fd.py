"""`write_fd`: a text of the model's own becomes a descriptor.

The text is finished when the call is: a note, a draft that others shall read. Writing on into an open
stream is another operation with another answer; it would begin in `run`, on the arguments that name
the stream.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from fdstore.render import fd_write
from fdstore.store import contents
from fdstore.store.operation import Operation
from fdstore.tools.tool import Arguments, Context, Outcome, Tool, stored

SOURCE = "note"


class WriteFD(Arguments, frozen=True, kw_only=True):
    data: Annotated[str, msgspec.Meta(description="The text, exactly as it is to be stored.")]


def run(context: Context, arguments: WriteFD, call: str | None) -> Operation[Outcome]:
    text = stored("data", arguments.data)
    made = yield from contents.create(
        context.space, text, SOURCE, context.config.default_page_size, call=call
    )
    return fd_write(made.fd, made.chars, made.chars, made.state, f"The text is stored as {made.fd}.")


def describe(context: Context) -> str:
    return "Store a text of your own, such as a note or a draft, as a new fd."


TOOL = Tool(name="write_fd", arguments=WriteFD, describe=describe, run=run)
