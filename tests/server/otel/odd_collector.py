"""A collector that answers as a test says: what a healthy one never does."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from ottla.telemetry.export import encoding


class Pushed(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes


class OddCollector:
    """`status`, `headers` and `body` are the next answers; while `hangs` is set there is none."""

    def __init__(self) -> None:
        self.pushed: list[Pushed] = []
        self.status, self.body = 200, b""
        self.headers: dict[str, str] = {}
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.endpoint = ""

    def paths(self) -> set[str]:
        return {each.path for each in self.pushed}


def partly_accepted(number: int, reason: str) -> bytes:
    return encoding.sized(1, encoding.number(1, number) + encoding.text(2, reason))


@contextmanager
def odd_collector() -> Iterator[OddCollector]:
    collector = OddCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            collector.pushed.append(Pushed(self.path, dict(self.headers.items()), body))
            collector.goes_on.wait()
            self.send_response(collector.status)
            self.send_header("Content-Type", "application/x-protobuf")
            for name, value in collector.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(collector.body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            pass  # the node has left

    with Server(("127.0.0.1", 0), Handler) as server:
        collector.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.goes_on.set()
            server.shutdown()
            thread.join()
