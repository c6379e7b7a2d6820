"""The URL of a schema registry, checked before any request is sent to it."""

from urllib.parse import SplitResult, urlsplit

from ottla.model.hosts import is_host


def parse_registry_url(url: str) -> SplitResult:
    """Split `http://host:port` or `https://host:port/path`. Raises ValueError if the URL is neither."""
    try:
        parts = urlsplit(url)
        is_valid = (
            parts.scheme in ("http", "https")
            and is_host(parts.hostname or "")
            and (parts.port is None or parts.port > 0)  # reading `port` raises ValueError if it is no number
            and parts.path.isascii()
        )
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError(f"{url!r} is no URL of a schema registry: http://host:port is expected")
    return parts
