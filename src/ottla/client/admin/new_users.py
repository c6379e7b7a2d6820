"""Names and passwords that a new user cannot sensibly have.

Kafka's protocol accepts them all. ACLs, quotas and terminals take some of them for something else, so this client
refuses them before a request is made.
"""

from typing import Final

from ottla.client.checks import checked_name
from ottla.security.principal import ANONYMOUS, USER

NAME_MAX: Final = 255  # as long as Kafka's names may be where it has a limit


def checked_user(user: object) -> str:
    """Return the name of a user. Raise TypeError or ValueError if no user should have it."""
    name = checked_name(user, "the name of the user")
    wrong = _name_problem(name)
    if wrong is not None:
        raise ValueError(wrong)
    return name


def checked_password(password: object) -> str:
    """Return the password. Raise TypeError or ValueError if it cannot be one; the error does not contain it."""
    text = checked_name(password, "the password")
    if not text:
        raise ValueError("the password is empty")
    if not text.strip():
        raise ValueError("the password has only blanks")
    return text


def _name_problem(name: str) -> str | None:
    if not name:
        return "the name of the user is empty"
    if not name.strip() or name != name.strip():
        return f"the name of the user begins or ends with a blank: {name[:NAME_MAX]!r}"
    if not name.isprintable():
        return f"the name of the user has a character that cannot be seen: {name[:NAME_MAX]!r}"
    if len(name) > NAME_MAX:
        return f"the name of the user has {len(name)} characters: {NAME_MAX} are allowed"
    if name == "*":
        return f"no user can be *: in ACLs, {USER}:* stands for everybody"
    if name == ANONYMOUS.name:
        return f"no user can be {name}: this is who has not logged in"
    if name.startswith(f"{USER}:"):
        return f"the name of the user is {name.removeprefix(f'{USER}:')!r}: {USER}: is only written in ACLs"
    return None
