"""Scoped settings: broker settings that may also be set for one tenant, or for topics whose names begin alike.

    ottla.tenant.partitions.max            for all tenants that have no value of their own
    ottla.tenant.partitions.max@acme       for the tenant acme
    ottla.topic.policy.partitions.max@log. for topics whose names begin with `log.`

They are cluster-wide dynamic settings, so they are in the metadata log. A real Kafka keeps settings that it
does not know.
"""

import re
from collections.abc import Mapping
from typing import TypeVar

from ottla.model.config import SCOPE_MARK
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import TENANT_NAME_CHARS_MAX
from ottla.model.names import TOPIC_NAME_CHARS_MAX
from ottla.model.setting import Setting, SettingScope

T = TypeVar("T")

_SCOPES = {
    # No dot: so the prefix of one tenant is never the beginning of another's.
    SettingScope.TENANT: (
        re.compile(rf"[a-zA-Z0-9][a-zA-Z0-9_-]{{0,{TENANT_NAME_CHARS_MAX - 1}}}", re.ASCII),
        f"a tenant's name has at most {TENANT_NAME_CHARS_MAX} ASCII letters, digits, '_' and '-', and begins with a "
        "letter or digit",
    ),
    SettingScope.TOPIC_PREFIX: (
        re.compile(rf"[a-zA-Z0-9._-]{{1,{TOPIC_NAME_CHARS_MAX}}}", re.ASCII),
        "topic names consist of ASCII letters, digits, '.', '_' and '-'",
    ),
}


def scoped_name(setting: Setting[object], scope: str) -> str:
    """Return the name of a setting for one tenant or prefix."""
    return f"{setting.name}{SCOPE_MARK}{scope}"


def scope_problem(kind: SettingScope, scope: str) -> str | None:
    """Return what is wrong with the name of a tenant, or a prefix; None if nothing is."""
    legal, rule = _SCOPES[kind]
    return None if legal.fullmatch(scope) else f"{scope!r} cannot be: {rule}"


def check_scope(setting: Setting[object], name: str) -> None:
    """Raise INVALID_CONFIG if `name` is this setting for something that cannot exist."""
    _, mark, scope = name.partition(SCOPE_MARK)
    if mark and setting.scope is not None:
        problem = scope_problem(setting.scope, scope)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Invalid configuration name {name}: {problem}")


def scoped_values(setting: Setting[T], texts: Mapping[str, str]) -> dict[str, T]:
    """Return the values of a setting by what it is set for; bad values are left out."""
    found: dict[str, T] = {}
    head = f"{setting.name}{SCOPE_MARK}"
    for name, text in texts.items():
        if name.startswith(head):
            try:
                check_scope(setting, name)
                found[name.removeprefix(head)] = setting.parse(text)
            except ApiError:
                continue
    return found
