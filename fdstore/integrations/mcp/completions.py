"""Completion of arguments: the ids and names that the caller's process holds, for the prompt and for URIs."""

from __future__ import annotations

import mcp_types as types

from fdstore.integrations.mcp.access import Access
from fdstore.integrations.mcp.prompts import STUDY
from fdstore.integrations.mcp.toolsets import Toolsets
from fdstore.store.addresses import TEMPLATE
from fdstore.store.contents import descriptors

MAX_VALUES = 100
"""The most values of one answer, by the specification."""

LOOKED_AT = 1000
"""Descriptors of which those that match are offered."""


async def complete(
    toolsets: Toolsets, access: Access, params: types.CompleteRequestParams
) -> types.CompleteResult:
    """Return the values that begin with what was typed; none for arguments that have no known values."""
    typed, found = params.argument.value, list[str]()
    if "read" in access.permissions and _is_ours(params.ref):
        if params.argument.name == "process":
            found = [access.process]
        elif params.argument.name == "fd":
            process = (await toolsets.toolset(access)).process
            held = await process.store.run(descriptors.listing(process.handle, count=LOOKED_AT))
            found = [each.fd for each in held.descriptors]
    values = [each for each in found if each.startswith(typed)]
    completion = types.Completion(
        values=values[:MAX_VALUES], total=len(values), has_more=len(values) > MAX_VALUES
    )
    return types.CompleteResult(completion=completion)


def _is_ours(ref: types.ResourceTemplateReference | types.PromptReference) -> bool:
    return ref.name == STUDY.name if isinstance(ref, types.PromptReference) else ref.uri == TEMPLATE
