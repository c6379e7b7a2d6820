"""HTTP connections of the client, to registries and identity providers: with TLS for `https`."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import SplitResult

from ottla.client.security.tls import Tls


def http_connection(url: SplitResult, timeout_s: float, tls: Tls | None) -> http.client.HTTPConnection:
    """Return a connection to a URL's host, not opened yet. `tls` is None for the operating system's authorities."""
    host = url.hostname or ""
    if url.scheme != "https":
        return http.client.HTTPConnection(host, url.port, timeout=timeout_s)
    from ottla.client.security.context import context_of

    return http.client.HTTPSConnection(host, url.port, timeout=timeout_s, context=context_of(tls or Tls()))


@contextmanager
def bounded_connection(
    url: SplitResult, total_s: float, tls: Tls | None, *, connect_s: float | None = None
) -> Iterator[http.client.HTTPConnection]:
    """Open a connection for one request whose answer is not trusted to end; raise TimeoutError after `total_s`. To
    connect may take as long, or `connect_s`.

    The timeout of a socket begins anew with each byte, so a timer ends the connection. The timer has a duplicate of the
    socket, because the TLS handshake and the reading of an answer take the socket out of the connection.
    """
    connection = http_connection(url, total_s, tls)
    plain = socket.create_connection((connection.host, connection.port), connect_s or total_s)
    plain.settimeout(total_s)
    duplicate = plain.dup()
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        with suppress(OSError):
            duplicate.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(total_s, end)
    timer.daemon = True
    timer.start()
    try:
        connection.sock = plain if url.scheme != "https" else _with_tls(plain, connection.host, tls)
        yield connection
    except TimeoutError:
        is_late.set()  # one read has waited for all of `total_s`
    except (OSError, http.client.HTTPException):
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
        connection.close()
        duplicate.close()
    if is_late.is_set():  # what was read may be a part of the answer
        raise TimeoutError(f"the answer takes longer than {total_s:g} seconds")


def _with_tls(plain: socket.socket, host: str, tls: Tls | None) -> socket.socket:
    from ottla.client.security.context import context_of

    return context_of(tls or Tls()).wrap_socket(plain, server_hostname=host)
