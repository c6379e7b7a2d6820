"""The HTTP kit (Starlette on uvicorn) that everything which speaks HTTP is built with.

`answers` says what JSON answers and errors look like, `bodies` bounds what a request may carry, `serving` runs an
application inside an event loop that somebody else owns.
"""
