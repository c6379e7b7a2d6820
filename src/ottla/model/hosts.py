"""Host names in the addresses that users and other processes give."""

import re

_NAME_CHARS_MAX = 253
_LABEL_CHARS_MAX = 63
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?", re.ASCII)
_IPV6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[A-Za-z0-9_.-]+)?", re.ASCII)


def is_host(text: str) -> bool:
    """Whether the text can be a host name or an IP address (IPv6 without brackets); it need not exist."""
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            return False
    if _IPV6.fullmatch(text) is not None:
        return True
    labels = text.removesuffix(".").split(".")
    return (
        _NAME.fullmatch(text) is not None
        and len(text) <= _NAME_CHARS_MAX
        and all(0 < len(label) <= _LABEL_CHARS_MAX for label in labels)
    )
