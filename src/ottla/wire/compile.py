"""Codecs: for each message and version a flat `decode` and `encode`, generated and compiled on first use.

    message, pos = decoder(FetchRequest, 12)(view, pos)       encoder(FetchResponse, 12)(message, out, splices)

Rules
- `decode` takes a `memoryview` of bytes and returns the message and the position after it. Malformed bytes raise
  `WireError`; time and memory are in proportion to the bytes given. Unknown tagged fields are skipped.
- `encode` appends to a bytearray. Records may be bytes, or any object with a length, or a list of such: then only the
  length is written and `(position in out, records)` appended to `splices`, for the connection to send at that position.
  After a `WireError` the bytes that were appended are invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from ottla.wire.decoding import decode_source
from ottla.wire.encoding import encode_source
from ottla.wire.message import Struct, build
from ottla.wire.source import Bound
from ottla.wire.types import Crowded, WireError

__all__ = [
    "Crowded",
    "WireError",
    "bounded_decoder",
    "decode",
    "decoder",
    "encode",
    "encoder",
    "step_decoder",
    "step_encoder",
]

M = TypeVar("M", bound=Struct)
Splices = list[tuple[int, Any]]


def decoder(cls: type[M], version: int) -> Callable[..., tuple[M, int]]:
    """Return `decode(view, pos=0) -> (message, pos)` for one version."""
    known = cls._decoders.get(version)
    if known is None:
        _check_version(cls, version)
        source, scope = decode_source(cls, version)
        known = cls._decoders[version] = build(source, f"<decode {cls.__name__} v{version}>", scope, "decode")
    return known  # type: ignore[no-any-return]  # a cast would be a call on the hot path


def encoder(cls: type[M], version: int) -> Callable[[M, bytearray, Splices], None]:
    """Return `encode(message, out, splices)` for one version."""
    known = cls._encoders.get(version)
    if known is None:
        _check_version(cls, version)
        source, scope = encode_source(cls, version)
        known = cls._encoders[version] = build(source, f"<encode {cls.__name__} v{version}>", scope, "encode")
    return known  # type: ignore[no-any-return]


def bounded_decoder(cls: type[M], version: int) -> Callable[..., tuple[M, int]]:
    """Like `decoder`, but the function raises Crowded if the message must be decoded in steps."""
    made: Callable[..., tuple[M, int]] = _bounded(cls._decoders, decode_source, cls, version, Bound.AT_ONCE)
    return made


def step_decoder(cls: type[M], version: int) -> Callable[..., Generator[None, None, tuple[M, int]]]:
    """Like `decoder`, in steps of some milliseconds; the view must not change meanwhile."""
    made: Callable[..., Generator[None, None, tuple[M, int]]]
    made = _bounded(cls._decoders, decode_source, cls, version, Bound.STEPS)
    return made


def step_encoder(cls: type[M], version: int) -> Callable[[M, bytearray, Splices], Generator[None, None, None]]:
    """Like `encoder`, in steps of some milliseconds; the message must not change meanwhile."""
    made: Callable[..., Generator[None, None, None]]
    made = _bounded(cls._encoders, encode_source, cls, version, Bound.STEPS)
    return made


def _bounded(
    known: dict[object, Any],
    write: Callable[[type[Struct], int, Bound], tuple[str, dict[str, object]]],
    cls: type[Struct],
    version: int,
    bound: Bound,
) -> Any:
    made = known.get((version, bound))
    if made is None:
        _check_version(cls, version)
        source, scope = write(cls, version, bound)
        verb = write.__name__.removesuffix("_source")
        made = known[version, bound] = build(source, f"<{verb} {cls.__name__} v{version} {bound.value}>", scope, verb)
    return made


def decode(cls: type[M], version: int, data: bytes | bytearray | memoryview) -> M:
    """Decode a message that fills `data`."""
    view = memoryview(data)
    message, pos = decoder(cls, version)(view)
    if pos != len(view):
        raise WireError(f"v{version} {cls.__name__}: {len(view) - pos} bytes too many")
    return message


def encode(message: Struct, version: int) -> bytes:
    """Encode a message whose records, if any, are bytes."""
    out = bytearray()
    splices: Splices = []
    encoder(type(message), version)(message, out, splices)
    if splices:
        raise WireError(f"v{version} {type(message).__name__}: its records are not bytes")
    return bytes(out)


def _check_version(cls: type[Struct], version: int) -> None:
    if version not in cls.versions:
        raise WireError(f"{cls.__name__} has versions {cls.versions.low} to {cls.versions.high}, not {version}")
