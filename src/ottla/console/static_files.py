"""The console's own style sheet, script and icon. Their address names their content, so browsers keep them for ever."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from ottla.console.answers import FileAnswer
from ottla.console.call import PageCall
from ottla.console.html import path_to
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import page

_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_NAMES = ("console.css", "console.js", "icon.svg")
_DIGEST_CHARS = 12


def address_of(name: str) -> str:
    return path_to("static", _digest(name), name)


@page("/static/{digest}/{name}", is_open=True)
async def static_file(call: PageCall) -> FileAnswer:
    name = call.params["name"]
    if name not in _NAMES:
        raise RefusedRequest(404, "there is no such file")
    kept = "public, max-age=31536000, immutable" if call.params["digest"] == _digest(name) else "no-store"
    return FileAnswer(_content(name), _TYPES[name.rpartition(".")[2]], cache_control=kept)


@cache
def _content(name: str) -> bytes:
    return files("ottla.console").joinpath("static", name).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:_DIGEST_CHARS]
