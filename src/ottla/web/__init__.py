"""The HTTP kit (Starlette on uvicorn) that everything which speaks HTTP is built with."""
