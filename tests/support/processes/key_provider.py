"""An identity provider's keys at an address of their own: what it answers, and how often it was asked."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext


class KeyProvider:
    """Serves `document`. With another `status` it fails; `hold` lets it answer only after `release`."""

    def __init__(self, document: str | bytes, tls: SSLContext | None = None) -> None:
        self.document = document
        self.status = 200
        self.asked = 0
        self.most_at_once = 0
        self._open = threading.Event()
        self._open.set()
        self._at_once = 0
        self._lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._scheme = "http" if tls is None else "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self._server.server_address[1]}/keys"

    def hold(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.asked += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        self._open.wait()
        content = self.document.encode() if isinstance(self.document, str) else self.document
        with self._lock:  # before the answer, because the next request may come at once after it
            self._at_once -= 1
        try:
            handler.send_response(self.status)
            handler.send_header("Content-Length", str(len(content)))
            handler.end_headers()
            handler.wfile.write(content)
        except ConnectionError:
            """A reader may have enough before the end."""
