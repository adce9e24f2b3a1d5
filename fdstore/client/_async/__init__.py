"""The asyncio client, and the source of the blocking one."""
