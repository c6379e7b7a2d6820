"""The blocking client: the asyncio client for code without an event loop."""
