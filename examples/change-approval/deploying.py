"""The tool that wants approval. A real one would change machines."""

import fdstore


@fdstore.tool(repeatable=False)
def deploy(version: int, machines: str) -> str:
    """Deploy a version of the shop.

    Args:
        version: its number
        machines: the machines that get it: "test", "half" or "all"
    """
    return f"version {version} runs on {machines} machines"
