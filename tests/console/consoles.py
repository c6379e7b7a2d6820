"""A console in the test's process, and a visitor that reads its pages as a browser without scripts would."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

from ottla.console.options import ConsoleOptions
from ottla.console.service import ConsoleService
from ottla.testing.loop_thread import LoopThread


class Shown(NamedTuple):
    """An answer as the visitor sees it."""

    status: int
    text: str
    headers: Mapping[str, str]
    path: str

    @property
    def words(self) -> str:
        """What is to be read on the page, without markup."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.text)).split())


def marked(shown: Shown) -> list[str]:
    """The fields of the page's forms that are marked as wrong."""
    tags = re.findall(r"<(?:input|textarea|select)[^>]*>", shown.text)
    return [named[1] for each in tags if "aria-invalid" in each and (named := re.search('name="([^"]*)"', each))]


class Visitor:
    """Keeps cookies, follows redirects, and sends forms with the token of the page that they are on."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._url = urlsplit(url)
        self._tls = tls
        self.cookies: dict[str, str] = {}

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> Shown:
        return self._followed("GET", path, None, headers or {})

    def part(self, path: str) -> Shown:
        """What the script asks for to renew a part of a page."""
        return self.get(path, headers={"X-Fragment": "1"})

    def send(self, page: str, action: str, **fields: str) -> Shown:
        """Fill in the form of a page that is sent to `action`, and send it."""
        shown = self.get(page)
        found = re.search(
            rf'<form[^>]*action="{re.escape(action.replace("&", "&amp;"))}".*?</form>', shown.text, re.DOTALL
        )
        assert found, f"{page} has no form for {action}: {shown.words[:500]}"
        hidden = {
            unescape(name): unescape(value)
            for name, value in re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', found[0])
        }
        return self.post(action, {**hidden, **fields})

    def post(self, path: str, fields: Mapping[str, str], *, headers: Mapping[str, str] | None = None) -> Shown:
        form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": self._url.geturl()}
        return self._followed("POST", path, urlencode(fields), {**form, **(headers or {})})

    def load(self, path: str) -> bytes:
        """The bytes of a file."""
        connection = http.client.HTTPConnection(*self.host, timeout=60)
        try:
            cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            connection.request("GET", path, headers={"Cookie": cookies})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            return answer.read()
        finally:
            connection.close()

    @property
    def host(self) -> tuple[str, int]:
        """Where the console listens."""
        assert self._url.hostname and self._url.port
        return self._url.hostname, self._url.port

    def stream(self, path: str) -> list[dict[str, Any]]:
        """All parts of a stream."""
        shown = self.part(path)
        assert shown.status == 200, shown.words
        return [json.loads(line) for line in shown.text.splitlines()]

    @contextmanager
    def opened(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """An answer that is being read; the visitor leaves at the end of the block."""
        assert self._url.hostname
        connection = http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=60)
        try:
            connection.request("GET", path, headers={"X-Fragment": "1"})
            yield connection.getresponse()
        finally:
            connection.close()

    def _followed(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Shown:
        for _ in range(5):
            shown = self._once(method, path, body, headers)
            if shown.status != 303:
                return shown
            method, body, path, headers = "GET", None, urljoin(path, shown.headers["location"]), {}
        raise AssertionError("too many redirects")

    def _once(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Shown:
        assert self._url.hostname
        host, port = self._url.hostname, self._url.port
        if self._tls is None:
            connection = http.client.HTTPConnection(host, port, timeout=60)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=60, context=self._tls)
        try:
            cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
            connection.request(method, path, body, {**cookies, **headers})
            answer = connection.getresponse()
            text = answer.read().decode()
            for cookie in answer.headers.get_all("set-cookie") or ():
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies[name] = value.strip('"')
            return Shown(answer.status, text, {name.lower(): value for name, value in answer.getheaders()}, path)
        finally:
            connection.close()


@contextmanager
def running_console(options: ConsoleOptions) -> Iterator[ConsoleService]:
    """A console that serves in a thread of its own."""
    service = ConsoleService(options)
    ended: list[asyncio.Event] = []

    async def serve(ready: Callable[[], None]) -> None:
        ended.append(asyncio.Event())
        await service.start()
        ready()
        await ended[0].wait()
        await service.stop()

    thread = LoopThread("console", serve)
    thread.start()
    try:
        yield service
    finally:
        thread.end(lambda: ended[0].set())
