"""A Kafka Connect distributed worker on loopback, driven through its REST interface."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.clients.members import until
from tests.support.java.apps import App
from tests.support.java.programs import CLASSPATH_CONNECT
from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S

UNREADY = (404, 409, 500, 503)  # status codes of a worker that starts or whose group rebalances


class ConnectWorker:
    """A worker. Its connectors, offsets and states are in topics of the broker, so a restarted
    worker finds them again.
    """

    def __init__(self, directory: Path, bootstrap: str, group: str) -> None:
        (port,) = free_ports(1)
        self._address = f"http://127.0.0.1:{port}"
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-status",
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
            **{f"{kind}.storage.partitions": "2" for kind in ("offset", "status")},
            "exactly.once.source.support": "enabled",
            "offset.flush.interval.ms": "500",
            "session.timeout.ms": "6000",
            "consumer.session.timeout.ms": "6000",  # of the sink, so that a killed task is soon replaced
            "heartbeat.interval.ms": "500",
            "scheduled.rebalance.max.delay.ms": "1000",
            "plugin.discovery": "service_load",
            "listeners": self._address,
        }
        path = directory / "connect.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        main = "org.apache.kafka.connect.cli.ConnectDistributed"
        self._app = App(directory / "connect.log", main, str(path), classpath=CLASSPATH_CONNECT)

    def start(self) -> None:
        self._app.start()

    def kill(self) -> None:
        self._app.kill()

    def connect(self, name: str, **settings: str) -> None:
        """Create the connector, as soon as the worker is ready."""
        config = {"tasks.max": "1"} | {key.replace("_", "."): value for key, value in settings.items()}
        until(lambda: self.ask("PUT", f"/connectors/{name}/config", config), self._app.said)

    def state(self, name: str) -> list[str]:
        """The states of the connector and its tasks; empty while the worker cannot answer."""
        status = self.ask("GET", f"/connectors/{name}/status")
        return [each["state"] for each in (status["connector"], *status["tasks"])] if status else []

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer, or None while the worker does not answer or a rebalance is under way."""
        assert not self._app.ended(), self._app.said()
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            error.close()
            if error.code not in UNREADY:
                raise AssertionError(text) from None
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        return None
