"""A console of a secured broker, and visitors who have signed in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.console.consoles import Visitor, running_console

from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.registry import RegistryOptions
from ottla.console.options import ConsoleOptions
from ottla.testing.secure import SecureBroker


def secured_options(broker: SecureBroker, *, registry: bool = False) -> ConsoleOptions:
    """The options of a console in which visitors sign in."""
    security = ClientOptions(parse_bootstrap(broker.bootstrap), security=broker.security).known_security
    known = RegistryOptions.of(broker.registry.url, broker.registry_security_of()) if registry else None
    return ConsoleOptions(broker.bootstrap, port=0, security=security, registry=known, signs_in=True)


@contextmanager
def secured_console(broker: SecureBroker, *, registry: bool = False) -> Iterator[str]:
    """The URL of a console in which visitors sign in."""
    with running_console(secured_options(broker, registry=registry)) as console:
        yield console.url


def signed_in(url: str, user: str, password: str) -> Visitor:
    visitor = Visitor(url)
    shown = visitor.send("/sign-in", "/sign-in", user=user, password=password)
    assert shown.status == 200, shown.words
    return visitor
