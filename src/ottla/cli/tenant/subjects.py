"""The subjects of a tenant in a schema registry, which is a service of its own: a cluster does not know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.operations.errors import CommandError

if TYPE_CHECKING:
    from ottla.cli.registry.calls import RegistryCalls

_GONE: Final = (40401, 40404, 40406)  # no such subject; its versions, or all of it, were deleted softly before
_REFERRED_TO: Final = 42206


def subjects_of(registry: RegistryCalls, prefix: str) -> list[str]:
    """The subjects of all contexts whose names begin with the prefix, and those that are deleted softly."""
    return [str(each) for each in registry.get("subjects", subjectPrefix=f":*:{prefix}", deleted=True)]


def delete_subjects(registry: RegistryCalls, prefix: str) -> int:
    """Delete them permanently, and return how many there were. One that others refer to goes after them."""
    count, left = 0, subjects_of(registry, prefix)
    while left:
        gone = [each for each in left if _is_deleted(registry, each)]
        if not gone:
            raise CommandError(
                f"{len(left)} subjects stay, because other subjects refer to them: {left[0]}",
                f"delete those first, and then each with `ottla schema delete {left[0]} --permanent`",
            )
        count += len(gone)
        left = [each for each in left if each not in gone]
    return count


def _is_deleted(registry: RegistryCalls, subject: str) -> bool:
    from ottla.cli.registry.calls import RegistryRefused

    for query in ({}, {"permanent": True}):
        try:
            registry.delete("subjects", subject, **query)
        except RegistryRefused as error:
            if error.code == _REFERRED_TO:
                return False
            if error.code not in _GONE:
                raise
    return True
