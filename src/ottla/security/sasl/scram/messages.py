"""The four messages of a SCRAM exchange as text: parsing and writing.

Kafka accepts ASCII in user names only; Ottla accepts all of UTF-8, as RFC 5802 does. Only the GS2 header `n` is
supported: Kafka has no channel binding.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import NamedTuple

from ottla.model import limits

TOKEN_AUTH = "tokenauth"  # the extension with which a client says that its user name is the id of a delegation token

_NAME = r"(?:[^\x00=,]|=2C|=3D)+"
_VALUE = r"[^\x00,]+"
_NONCE = r"[\x21-\x2b\x2d-\x7e]+"  # printable ASCII without the comma
_BASE64 = "[A-Za-z0-9/+]*={0,2}"
_EXTENSIONS = f"(?:,[A-Za-z]+={_VALUE})*"

_CLIENT_FIRST = re.compile(
    f"(?P<gs2>n,(?:a=(?P<authzid>{_NAME}))?,)"
    f"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    f"(?:m={_VALUE},)?r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,10}}){_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    f"(?P<unproven>c=(?P<channel>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(f"(?:e=(?P<error>[^\x00=,]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


class InvalidScramMessage(ValueError):
    """A message is not one of SCRAM. The text does not contain the message."""


class ClientFirst(NamedTuple):
    gs2_header: str
    bare: str
    user: str
    authorization_id: str
    nonce: str
    extensions: dict[str, str]

    @property
    def token_auth(self) -> bool:
        return self.extensions.get(TOKEN_AUTH, "").lower() == "true"


class ServerFirst(NamedTuple):
    text: str
    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    without_proof: str
    channel_binding: bytes
    nonce: str
    proof: bytes


class ServerFinal(NamedTuple):
    error: str | None
    signature: bytes


def parse_client_first(message: bytes) -> ClientFirst:
    found = _match(_CLIENT_FIRST, message, "client first")
    extensions = dict(pair.split("=", 1) for pair in found["extensions"].split(",")[1:])
    name, authorization_id = user_name(found["name"]), user_name(found["authzid"] or "")
    return ClientFirst(found["gs2"], found["bare"], name, authorization_id, found["nonce"], extensions)


def parse_server_first(message: bytes) -> ServerFirst:
    found = _match(_SERVER_FIRST, message, "server first")
    return ServerFirst(found.string, found["nonce"], _decoded(found["salt"]), int(found["iterations"]))


def parse_client_final(message: bytes) -> ClientFinal:
    found = _match(_CLIENT_FINAL, message, "client final")
    return ClientFinal(found["unproven"], _decoded(found["channel"]), found["nonce"], _decoded(found["proof"]))


def parse_server_final(message: bytes) -> ServerFinal:
    found = _match(_SERVER_FINAL, message, "server final")
    return ServerFinal(found["error"], _decoded(found["signature"] or ""))


def write_server_first(nonce: str, salt: bytes, iterations: int) -> str:
    return f"r={nonce},s={b64encode(salt).decode()},i={iterations}"


def sasl_name(user: str) -> str:
    """Escape the characters that separate the fields of a message."""
    return user.replace("=", "=3D").replace(",", "=2C")


def user_name(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def is_nonce(text: str) -> bool:
    return re.fullmatch(_NONCE, text) is not None


def _match(pattern: re.Pattern[str], message: bytes, kind: str) -> re.Match[str]:
    if len(message) > limits.SCRAM_MESSAGE_BYTES_MAX:
        raise InvalidScramMessage(f"the SCRAM {kind} message has {len(message)} bytes")
    try:
        found = pattern.fullmatch(message.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise InvalidScramMessage(f"the SCRAM {kind} message has an invalid format")
    return found


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise InvalidScramMessage("a SCRAM message has an invalid base64 field") from None
