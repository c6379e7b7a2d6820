"""The syntax of subjects and contexts.

A context is a registry of its own inside the registry: ids, subjects, settings. Its name begins with a dot; the default
one is just `.`. A subject of another context is written `:.context:subject`, the context itself `:.context:`. The
context `.__GLOBAL` has settings only, for all contexts that have none of their own.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.limits import SUBJECT_NAME_CHARS_MAX

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
EVERY_CONTEXT = ":*:"
CONTEXT_PREFIX = ":."
# Names that Confluent uses for other purposes.
_RESERVED_SUBJECTS = ("__GLOBAL", "__EMPTY")


class SubjectName(NamedTuple):
    """A subject in its context."""

    context: str
    subject: str

    @property
    def written(self) -> str:
        return prefix_of(self.context) + self.subject


def split(written: str | None) -> SubjectName:
    """Split a qualified name. None is the default context itself."""
    if written is None:
        return SubjectName(DEFAULT_CONTEXT, "")
    if written.startswith(CONTEXT_PREFIX):
        context, _, subject = written[1:].partition(":")
        return SubjectName(context, subject)
    if written.startswith(EVERY_CONTEXT):
        return SubjectName("*", written[len(EVERY_CONTEXT) :])
    return SubjectName(DEFAULT_CONTEXT, written)


def prefix_of(context: str) -> str:
    """Return the prefix of the names of a context's subjects."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def context_of(written: str | None) -> str:
    return split(written).context


def normal(written: str) -> str:
    """Return the normal spelling of a name: `:.:orders` is `orders`, `:.west` is `:.west:`."""
    return split(written).written


def beside(parent: str, subject: str) -> str:
    """Return the subject that a schema of subject `parent` refers to: one without a context is in the parent's."""
    name = split(subject)
    if name.context != DEFAULT_CONTEXT:
        return subject
    return prefix_of(context_of(parent)) + subject


def normal_context(given: str) -> str | None:
    """Return a context from a path or a parameter (`west`, `.west`, `:.west:`) as a prefix; None if it is invalid."""
    bare = given.removeprefix(":").removesuffix(":")
    if ":" in bare:
        return None
    return prefix_of(bare if bare.startswith(".") else "." + bare)


def is_context(written: str | None) -> bool:
    return split(written).subject == ""


def is_valid(written: str, for_settings: bool = False) -> bool:
    """Return whether this is a valid name of a subject (or, for settings, of a context)."""
    if len(written) > SUBJECT_NAME_CHARS_MAX or any(is_control(letter) for letter in written):
        return False
    name = split(written)
    if name.subject in _RESERVED_SUBJECTS:
        return False
    return for_settings or name.context != GLOBAL_CONTEXT


def is_control(letter: str) -> bool:
    return letter <= "\x1f" or "\x7f" <= letter <= "\x9f"
