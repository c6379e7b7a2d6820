"""Making the transport of a connection: TCP, or TLS over it; failures are told in one line."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING

from ottla.client.address import Address
from ottla.client.errors import NotConnected

if TYPE_CHECKING:
    from ottla.client.security.tls import Tls


async def dial(address: Address, protocol: asyncio.Protocol, timeout_ms: int, tls: Tls | None) -> None:
    """Connect the protocol to an address; raise NotConnected, or AuthenticationError if another attempt is useless."""
    loop = asyncio.get_running_loop()
    context: ssl.SSLContext | None = None
    if tls is not None:
        from ottla.client.security.context import context_in_thread

        context = await context_in_thread(tls)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await loop.create_connection(
                lambda: protocol,
                address.host,
                address.port,
                ssl=context,
                server_hostname=None if context is None else address.host,
            )
    except TimeoutError:
        raise NotConnected(f"no connection to {address} within {timeout_ms} ms") from None
    except OSError as error:
        if context is not None and isinstance(error, ssl.SSLError | ConnectionResetError | ConnectionAbortedError):
            from ottla.client.security.tls_failures import tls_failure

            raise tls_failure(address, error) from None
        why = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
        raise NotConnected(f"no connection to {address}: {why}") from None
    except (OverflowError, ValueError) as error:  # invalid port or host name
        raise NotConnected(f"no connection to {address}: {error}") from None
