"""Log levels as a resource that can be described and altered (KIP-412). Changed levels last until the process ends."""

from __future__ import annotations

import logging

from ottla.cluster.commands.alter_configs import ConfigAlteration, Op
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import node_id_of

ROOT = "root"
# Log4j's names, as in the protocol, and Python's levels.
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {logging.DEBUG: "DEBUG", logging.INFO: "INFO", logging.WARNING: "WARN", logging.ERROR: "ERROR"}


def levels() -> dict[str, str]:
    """Return the effective level of the root logger and of every logger of Ottla."""
    found = {ROOT: _name(logging.getLogger().getEffectiveLevel())}
    for name in sorted(logging.root.manager.loggerDict):
        if name == "ottla" or name.startswith("ottla."):
            found[name] = _name(logging.getLogger(name).getEffectiveLevel())
    return found


def alter(node_id: int, resource_name: str, alterations: tuple[ConfigAlteration, ...], *, validate_only: bool) -> None:
    """Change the levels of this node's loggers; if one alteration is invalid, raise ApiError and change none."""
    id = node_id_of(resource_name)
    if id is None:
        raise _invalid(f"Node id must be an integer, but it is: {resource_name}")
    if id != node_id:
        raise _invalid(f"Unexpected node id. Expected {node_id}, but received {resource_name}")
    known = levels()
    for alteration in alterations:
        _check(alteration, known)
    if not validate_only:
        for name, op, text in alterations:
            level = _LEVELS[text.upper()] if op == Op.SET and text is not None else logging.NOTSET
            logging.getLogger(None if name == ROOT else name).setLevel(level)


def _check(alteration: ConfigAlteration, known: dict[str, str]) -> None:
    name, op, text = alteration
    if op in (Op.APPEND, Op.SUBTRACT):
        raise _invalid(f"{Op(op).name} operation is not allowed for the BROKER_LOGGER resource")
    if op not in (Op.SET, Op.DELETE):
        raise _invalid(f"Unknown operation type {op} is not allowed for the BROKER_LOGGER resource")
    if op == Op.DELETE and name == ROOT:
        raise _invalid("Removing the log level of the root logger is not allowed")
    if name not in known:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if op == Op.SET and (text is None or text.upper() not in _LEVELS):
        expected = ", ".join(_LEVELS)
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {text} as it is not a supported log level. Valid log levels are "
            f"{expected}",
        )


def _name(level: int) -> str:
    return _NAMES.get(level, "FATAL" if level > logging.ERROR else "DEBUG")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
