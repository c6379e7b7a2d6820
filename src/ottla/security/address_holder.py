"""Who an address belongs to, where addresses have shares of something bounded: the addresses of a /64 network of IPv6
count as one, because one client may have them all.
"""

from __future__ import annotations

from ipaddress import IPv6Address


def holder_of(address: str) -> str:
    """Return what an address is counted by: the address, or the /64 network of an IPv6 address."""
    if ":" not in address:
        return address
    parsed = IPv6Address(address.partition("%")[0])
    return str(parsed.ipv4_mapped or IPv6Address(int(parsed) >> 64 << 64))
