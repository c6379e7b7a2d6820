"""The HTTP kit (Starlette on uvicorn) of all HTTP services.

`answers` makes JSON answers and errors, `bodies` bounds the bodies of requests, `serving` runs an application inside an
existing event loop, `password_turns` orders the checks of passwords.
"""
