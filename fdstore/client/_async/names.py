"""The part of `Process` that gives contents names."""

from __future__ import annotations

from fdstore.client._async.process_base import ProcessBase
from fdstore.records import Descriptor
from fdstore.store.contents import contents, naming
from fdstore.text.names import name_id


class ProcessNames(ProcessBase):
    """Names: a process's own keys for its contents. `name:KEY` works wherever an id does, with selectors too
    (`name:notes/plan.md#L1-9`). KEY is any text of 1-1024 bytes of UTF-8 without control characters.
    """

    async def put(
        self,
        key: str,
        content: str | bytes,
        media_type: str | None = None,
        source: str | None = None,
        expect: naming.Expected = None,
        page_size: int | None = None,
    ) -> Descriptor:
        r"""Store a text or bytes as `name:KEY`, and replace what the name meant, in one atomic step. Others
        that hold the old content (children, copies) keep it. `media_type` defaults to that of the key's file
        name. One round trip up to about 250 kB.

        With `expect`, nothing happens unless the name still means that descriptor, or with `fdstore.ABSENT`
        is not there yet.

        Raises `Conflict` (it means something else), `InvalidArgument`, `QuotaExceeded` (counted without what
        is replaced).

        >>> plan = await proc.put("notes/plan.md", "# Plan\n")
        >>> plan.fd, plan.media_type
        ('name:notes/plan.md', 'text/markdown')
        >>> plan = await proc.put("notes/plan.md", "# Better plan\n", expect=plan)
        >>> (await proc.read("name:notes/plan.md#L1")).text
        '# Better plan\n'
        """
        operation = contents.create(
            self.handle,
            content,
            source,
            page_size,
            media_type=media_type,
            name=name_id(key),
            expected=naming.expectation(expect),
        )
        return await self._run(operation)

    async def find(self, key: str) -> Descriptor | None:
        """Return what a name means, or None (`stat` raises `NotFound`). One round trip.

        >>> d = await proc.put("call_1", "output")
        >>> (await proc.find("call_1")).fd, await proc.find("call_2")
        ('name:call_1', None)
        """
        return await self._run(naming.find(self.handle, key))

    async def rename(self, key: str, new_key: str, replace: bool = False) -> Descriptor:
        """Give a named content another name, in one atomic step. What had that name before is let go of with
        `replace`. One round trip.

        Raises `NotFound`, `Conflict` (the new name is taken), `InvalidArgument`.

        >>> d = await proc.put("draft.txt", "text")
        >>> (await proc.rename("draft.txt", "final.txt")).fd
        'name:final.txt'
        """
        return await self._run(naming.rename(self.handle, key, new_key, replace=replace))
