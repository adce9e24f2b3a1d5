"""The blocking client, generated from the asyncio client."""
