"""Searching all subjects and schemas by a prefix of their names.

A prefix `:*:` (and what follows it) is searched in every context; one without a context in the default one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ottla.schemas.registry.entities import SubjectVersion
from ottla.schemas.registry.names import CONTEXT_PREFIX, EVERY_CONTEXT, beside, split
from ottla.schemas.registry.state import RegistryState


def subjects_like(state: RegistryState, prefix: str, deleted: bool, deleted_only: bool) -> list[str]:
    """Return the subjects with this prefix. A subject with a version that is not deleted is not deleted."""
    found = []
    for subject in _like(state, prefix):
        is_deleted = all(it.deleted for it in state.subjects[subject].values())
        if is_deleted if deleted_only else deleted or not is_deleted:
            found.append(subject)
    return found


def schemas_like(
    state: RegistryState, prefix: str, deleted: bool, latest_only: bool, rule_type: str, with_aliased: bool
) -> list[SubjectVersion]:
    """Return all versions of subjects with this prefix, or the latest of each; with a rule of that type, if given."""
    subjects = dict.fromkeys(_like(state, prefix))
    if with_aliased:
        for target, names in aliases_of(state).items():
            if target in state.subjects and any(_begins(name, prefix) for name in names):
                subjects[target] = None
    found: list[SubjectVersion] = []
    for subject in sorted(subjects):
        versions = [it for it in state.versions(subject) if deleted or not it.deleted]
        found += versions[-1:] if latest_only else versions
    return [it for it in found if not rule_type or _has_rule(it, rule_type)]


def aliases_of(state: RegistryState) -> dict[str, list[str]]:
    """Return the aliases of subjects, by subject."""
    found: dict[str, list[str]] = {}
    for subject in sorted(name for name in state.configs if name is not None):
        alias = state.configs[subject].get("alias")
        if alias:
            found.setdefault(beside(subject, alias), []).append(subject)
    return found


def _like(state: RegistryState, prefix: str) -> Iterator[str]:
    return (subject for subject in sorted(state.subjects) if _begins(subject, prefix))


def _begins(subject: str, prefix: str) -> bool:
    if prefix.startswith(EVERY_CONTEXT):
        return split(subject).subject.startswith(prefix[len(EVERY_CONTEXT) :])
    name, wanted = split(subject), split(prefix)
    if prefix.startswith(CONTEXT_PREFIX) and ":" not in prefix[1:]:
        return name.context.startswith(wanted.context)
    return name.context == wanted.context and name.subject.startswith(wanted.subject)


def _has_rule(it: SubjectVersion, rule_type: str) -> bool:
    rules = it.rule_set or {}
    listed = (rules.get(kind) or () for kind in ("migrationRules", "domainRules", "encodingRules"))
    return any(rule.get("type") == rule_type for kind in listed for rule in kind)
