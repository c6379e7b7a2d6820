"""Options that many commands share, and the client that is made from them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ottla.cli.profile.chosen import bootstrap_or_profile, security
from ottla.model.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from ottla.client.address import Address
    from ottla.client.admin import Admin
    from ottla.client.options import ClientOptions

T = TypeVar("T")
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"


@contextmanager
def wrong_values(param_hint: str | None = None) -> Iterator[None]:
    """A context in which a ValueError says what is wrong with an argument."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=param_hint) from None


def not_empty(what: str) -> Callable[[str | None], str | None]:
    """A callback for an argument that names a thing of this kind."""

    def check(name: str | None) -> str | None:
        if name == "":
            raise typer.BadParameter(f"the name of the {what} is empty")
        return name

    return check


Topic = Annotated[str, typer.Argument(help="The topic.", callback=not_empty("topic"))]
Bootstrap = Annotated[
    str,
    typer.Option(
        "--bootstrap",
        "-b",
        envvar="OTTLA_BOOTSTRAP",
        help="Broker addresses: HOST[:PORT],...; port 9092 unless given.",
        callback=bootstrap_or_profile,
    ),
]
Settings = Annotated[list[str] | None, typer.Argument(help="Settings, NAME=VALUE.", show_default=False)]
Unset = Annotated[
    list[str],
    typer.Option("--unset", "-u", help="Remove this setting, so that the default counts; may be repeated."),
]
Append = Annotated[list[str], typer.Option("--append", help="Add VALUE to a list, NAME=VALUE; may be repeated.")]
Subtract = Annotated[
    list[str], typer.Option("--subtract", help="Remove VALUE from a list, NAME=VALUE; may be repeated.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def one_of(*known: str) -> Callable[[str | None], str | None]:
    """A callback for an option that accepts only these words."""

    def check(word: str | None) -> str | None:
        if word is not None and word not in known:
            raise typer.BadParameter(f"{word!r} is none of {', '.join(known)}")
        return word

    return check


LogFormatOption = Annotated[
    str,
    typer.Option(
        "--log-format", help="plain, or json: an object in each line of the log.", callback=one_of("plain", "json")
    ),
]


def client_options(bootstrap: str) -> ClientOptions:
    """The client options of the CLI: with shorter timeouts than in a program, because a person is waiting."""
    from ottla.client.options import ClientOptions, parse_bootstrap

    try:
        addresses = parse_bootstrap(bootstrap)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bootstrap") from None
    return ClientOptions(
        addresses, client_id="ottla-cli", connect_timeout_ms=5_000, api_timeout_ms=30_000, security=security()
    )


def registry_urls(text: str) -> str:
    """The URLs of a schema registry, separated by commas; where one has no scheme, it is http."""
    from ottla.client.registry_url import parse_registry_url

    urls = [url if "://" in url else f"http://{url}" for url in map(str.strip, text.split(",")) if url]
    try:
        for url in urls or [text]:
            parse_registry_url(url)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--registry") from None
    return ",".join(urls)


def with_admin(bootstrap: str, work: Callable[[Admin], Awaitable[T]]) -> T:
    """Do some work with an admin client, which is closed afterwards."""
    import asyncio

    from ottla.client.admin import Admin

    async def run() -> T:
        async with Admin(client_options(bootstrap)) as admin:
            return await work(admin)

    return asyncio.run(run())


def parse_pairs(texts: Iterable[str], what: str = "setting") -> dict[str, str]:
    """Parse `name=value` arguments."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=what)
        pairs[name.strip()] = value
    return pairs


def parse_reachable(text: str, option: str) -> Address:
    """Parse the HOST:PORT at which other nodes reach a node."""
    from ottla.client.address import Address
    from ottla.operations.addresses import host_and_port

    try:
        return Address(*host_and_port(text, default_host=""))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def parse_duration_ms(text: str, option: str) -> int:
    """Parse `10m`, `2h30m`, `45s`, `1d`, `500ms`; a plain number counts seconds."""
    from ottla.model import durations

    try:
        duration_ms = durations.parse_duration_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
    if duration_ms > INT64_MAX:
        raise typer.BadParameter(f"{text} is longer than Kafka can express", param_hint=option)
    return duration_ms


def parse_timestamp_ms(text: str, option: str) -> int:
    """Parse milliseconds since 1970, or an ISO date or time (local time unless it names a zone)."""
    from ottla.operations.formats import parse_time_ms

    try:
        return parse_time_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
