"""A server whose answers never end: a byte now and then, so that no read of its client ever takes long."""

from __future__ import annotations

import socket
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
# The head of a TLS record of 16 KiB with a handshake message in it.
HANDSHAKE = b"\x16\x03\x03\x40\x00"
_PAUSE_S = 0.02


class DrippingServer:
    """Says `beginning` when a client has sent something, and then a space every some milliseconds until `close`."""

    def __init__(self, beginning: bytes = ANSWER) -> None:
        self.asked = threading.Event()
        self._beginning = beginning
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return f"localhost:{self._listening.getsockname()[1]}"

    def close(self) -> None:
        self._over.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        for each in self._threads:
            each.join()
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._drip, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _drip(self, connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65_536)
                connection.sendall(self._beginning)
                self.asked.set()
                while not self._over.wait(_PAUSE_S):
                    connection.sendall(b" ")
            except OSError:
                """The client has had enough."""
