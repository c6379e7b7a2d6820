"""GuardedContext: a server's TLS context that reads each client's hello before OpenSSL does (`client_hello.py`)."""

from __future__ import annotations

import ssl

from ottla.security.client_hello import BadHello, ClientHelloReader

# A fatal alert (handshake_failure), which tells the client that it was refused.
_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"


class GuardedObject(ssl.SSLObject):
    """One connection. Its hello is collected outside of OpenSSL, which then gets it as a whole."""

    _reader: ClientHelloReader | None = None
    _incoming: ssl.MemoryBIO
    _outgoing: ssl.MemoryBIO

    def guard(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._reader, self._incoming, self._outgoing = ClientHelloReader(), incoming, outgoing

    def do_handshake(self) -> None:
        reader = self._reader
        if reader is not None and not self._incoming.eof:
            try:
                is_judged = reader.feed(self._incoming.read())
            except BadHello as error:
                self._outgoing.write(_ALERT)
                refused = ssl.SSLError(str(error))
                refused.reason = str(error)
                raise refused from None
            if not is_judged:
                raise ssl.SSLWantReadError
            self._reader = None
            self._incoming.write(reader.received)
        super().do_handshake()


class GuardedContext(ssl.SSLContext):
    """Of servers only."""

    sslobject_class = GuardedObject

    def __new__(cls) -> GuardedContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, GuardedObject)
        made.guard(incoming, outgoing)
        return made
