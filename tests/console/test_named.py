"""Addresses of things whose names may be anything."""

from urllib.parse import urlsplit

import pytest

from ottla.console.call import PageCall
from ottla.console.named import name_in, named_path
from ottla.console.options import ConsoleOptions
from ottla.console.routing import PageRoute, RouteTable
from ottla.console.security.sessions import Sessions


async def _page(call: PageCall) -> None:
    raise NotImplementedError


@pytest.mark.parametrize(
    "name", ["shop", "a/b", "/", "..", ".", "", "~", "a b?c#d%2F", "\0\n", "grün/\u202e", "%2e%2e"]
)
def test_the_name_comes_back_from_its_address(name: str) -> None:
    routes = RouteTable()
    routes.add(PageRoute("GET", "/groups/{group}/reset", _page))  # type: ignore[arg-type]
    address = urlsplit(named_path("groups", name, "reset", page=2))
    assert not {".", "..", ""} & set(address.path[1:].split("/")), "a browser would shorten the path"
    found = routes.find("GET", address.path)
    assert found is not None
    query = dict(part.split("=") for part in address.query.split("&"))
    call = PageCall(address.path, ConsoleOptions(""), Sessions(lambda: 0.0), params=found[1], query=query)
    assert name_in(call, "group") == name
    assert call.here().startswith(address.path), "the address of the page itself keeps what is encoded"
