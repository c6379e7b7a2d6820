"""The one form of an address in which hosts of ACLs and of clients are compared."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from ottla.model.limits import HOST_FORMS_KEPT


def comparable_host(host: str) -> str:
    """Return the host in the form in which two texts of one address are equal.

    An IPv6 address has many texts: Java writes `0:0:0:0:0:0:0:1` where others write `::1`, and a client of IPv4 may
    appear as `::ffff:10.0.0.1`. The scope of a link-local address (`fe80::1%eth0`) is left out: it names an interface
    of one node, and an Envelope does not have it. Every other text stays as it is.
    """
    return _comparable(host) if ":" in host else host


@lru_cache(HOST_FORMS_KEPT)
def _comparable(host: str) -> str:
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a listener at this host. A name counts as reachable from elsewhere."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
