"""A broker for tests: a whole node on an event loop of its own, in a thread of the test process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ottla.client.address import Address
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.config import unknown
from ottla.model.errors import ErrorCode
from ottla.model.settings.controller import CONTROLLER_LISTENER_NAMES
from ottla.model.settings.groups import GROUP_INITIAL_REBALANCE_DELAY_MS
from ottla.model.settings.log import LOG_DIRS
from ottla.model.settings.network import LISTENERS
from ottla.security.protocol import SecurityProtocol
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.settings.configs import Configs
from ottla.server.settings.listeners import advertised, listened, security_protocols
from ottla.testing.clock import Clock, Pause
from ottla.testing.faults import Fault, FaultScript
from ottla.testing.loop_thread import LoopThread

if TYPE_CHECKING:
    from ottla.testing.registry import Registry


class EmbeddedBroker:
    """A broker in the test process. `start` returns when clients may connect; `stop` when everything is on disk and
    closed.

    `clock.advance("45s")` advances the broker's clock, `fail(…)` makes requests fail, `pause()` stops the broker like
    SIGSTOP; `registry` is a schema registry of this broker.
    """

    def __init__(
        self,
        data_dir: Path | str,
        settings: Mapping[str, object] | None = None,
        security: Mapping[str, str] | None = None,
    ) -> None:
        """`security` is what clients of the first listener need if `settings` secure it (`security.protocol`, `sasl.*`,
        `ssl.*`); the registry logs in with it.

        Raises ValueError for an unknown setting: a test with a misspelt setting would test something else.
        """
        strangers = unknown(settings or (), BROKER_SETTINGS)
        if strangers:
            name, nearest = strangers[0]
            raise ValueError(f"there is no setting {name}" + (f", did you mean {nearest}?" if nearest else ""))
        self.data_dir = Path(data_dir)
        self.settings = {
            LISTENERS.name: "PLAINTEXT://127.0.0.1:0",
            LOG_DIRS.name: str(self.data_dir),
            GROUP_INITIAL_REBALANCE_DELAY_MS.name: "0",  # a test knows its members and need not wait for more
            **{name: str(value) for name, value in (settings or {}).items()},
        }
        self._security = dict(security or {})
        self.node: Node | None = None
        self.clock = Clock()
        self._faults = FaultScript()
        self._pause = Pause()
        self._thread = LoopThread("broker", self._serve, self.clock.new_loop)
        self._registry: Registry | None = None

    @property
    def registry(self) -> Registry:
        """A schema registry of this broker, started when it is first used: `broker.registry.url`."""
        if self._registry is None:
            self._registry = self._new_registry().start()
        return self._registry

    def _new_registry(self) -> Registry:
        from ottla.registry.security.settings import STORE_PREFIX
        from ottla.testing.registry import Registry

        settings = Configs(self.settings).broker
        protocol = security_protocols(settings)[listened(settings)[0].name]
        if protocol != SecurityProtocol.PLAINTEXT.name and not self._security:
            raise ValueError(f"the first listener has {protocol}: security= says what its clients need")
        own = {f"{STORE_PREFIX}{name}": text for name, text in self._security.items()}
        return Registry(self.bootstrap, settings=own)

    @property
    def bootstrap(self) -> str:
        """The value for clients' `bootstrap.servers`: where the first listener is, or is said to be by
        `advertised.listeners`.
        """
        name, address = self._listening()[0]
        told = {each.name: Address(each.host, each.port) for each in advertised(Configs(self.settings).broker)}
        return str(told.get(name, address))

    def _listening(self) -> list[tuple[str, Address]]:
        """The names of the listeners, and their addresses."""
        assert self.node is not None, "the broker is not running"
        settings = Configs(self.settings).broker
        controllers = settings[CONTROLLER_LISTENER_NAMES] or ()
        own = sorted(listened(settings), key=lambda each: each.name in controllers)  # as in the node's addresses
        return [(each.name, Address(*place)) for each, place in zip(own, self.node.addresses, strict=True)]

    @property
    def security(self) -> Mapping[str, str]:
        """The value for `security` of Ottla's clients: what the broker was given; empty for a plaintext listener."""
        return self._security

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop cleanly; calling it again is harmless."""
        self.resume()
        if self._registry is not None:
            self._registry.stop()
            self._registry = None
        self._stop_node()

    def _stop_node(self) -> None:
        self.resume()
        if self.node is not None:
            self._thread.end(self.node.request_stop)

    def restart(self) -> Self:
        """Start a new node on the same data directory and the same ports, so that clients find it again."""
        if self.node is not None:
            places = ",".join(f"{name}://{address}" for name, address in self._listening())
            self._stop_node()
            self.settings[LISTENERS.name] = places
        return self.start()

    # --- faults

    def fail(
        self,
        api: str,
        error: str | ErrorCode | None = None,
        times: int | None = 1,
        *,
        close: bool = False,
        delay: str | None = None,
        after: bool = False,
        client_id: str | None = None,
    ) -> Fault:
        """Make the next `times` requests of an API fail (None: all, until `heal`); only those of `client_id` if given.

        The requests get `error` and are not carried out; or, with `after`, are carried out and get the error
        nevertheless. `close` closes their connection instead; `delay` ("2s") delays them first.
        """
        return self._faults.add(api, error, times, close=close, delay=delay, after=after, client_id=client_id)

    def heal(self) -> None:
        """Let no more requests fail, and resume a paused broker."""
        self._faults.clear()
        self.resume()

    def pause(self) -> None:
        """Stop the broker, with all connections open, until `resume`; as if its process had got SIGSTOP."""
        assert self._thread.loop is not None, "the broker is not running"
        self._pause.begin(self._thread.loop)

    def resume(self) -> None:
        self._pause.end()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.pause()
        try:
            yield
        finally:
            self.resume()

    # --- the broker's thread

    async def _serve(self, ready: Callable[[], None]) -> None:
        ports = system_ports(self.settings)._replace(now_ms=self.clock.now_ms, watch=None)
        self.node = Node(self.settings, ports, intercept=self._faults.intercept)
        await self.node.start()
        ready()
        await self.node.stopped()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
