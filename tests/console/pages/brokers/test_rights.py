"""The pages of brokers for users without rights, and for a real Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.security.security import as_security
from ottla.console.options import ConsoleOptions
from ottla.model.resources import Resource
from ottla.testing.secure import SecureBroker


def test_a_user_without_rights_changes_nothing(tmp_path: Path) -> None:
    with SecureBroker(tmp_path / "data") as broker:
        password = broker.add_user("weak", "weak-password")
        options = ConsoleOptions(broker.bootstrap, port=0, security=as_security(broker.security), signs_in=True)
        name = "message.max.bytes"
        with running_console(options) as console:
            admin, weak = Visitor(console.url), Visitor(console.url)
            admin.send("/sign-in", "/sign-in", user="admin", password=broker.security["sasl.password"])
            assert weak.send("/sign-in", "/sign-in", user="weak", password=password).path == "/"
            assert admin.get(f"/brokers/1/settings/{name}").status == 200
            assert weak.get(f"/brokers/1/settings/{name}").status == 403
            for path in ("/brokers", "/brokers/balance", "/brokers/moves", "/brokers/quorum", "/brokers/leaders"):
                assert weak.get(path).status == 403, path
            token = {"_token": weak.get("/requests").text.partition('name="_token" value="')[2].partition('"')[0]}
            for path, fields in (
                (f"/brokers/1/settings/{name}/set", {"value": "2000000"}),
                ("/brokers/leaders", {}),
                ("/brokers/moves/unthrottle", {}),
                ("/brokers/features/metadata.version", {"level": "1", "downgrade": "on"}),
            ):
                shown = weak.post(path, {**token, **fields})
                assert shown.status in (400, 403), (path, shown.words)
            assert weak.post("/brokers/balance/apply", {**token, "plan": "1"}).status == 400, (
                "plans are each user's own"
            )
        with Blocking(broker.bootstrap, security=broker.security) as client:
            assert client.admin.configs.describe(Resource.broker(1), [name])[0].is_default


@pytest.mark.slow
def test_a_real_kafka(real_kafka: RealKafka) -> None:
    with running_console(ConsoleOptions(real_kafka.bootstrap, port=0)) as console:
        guest = Visitor(console.url)
        for path, words in (
            ("/brokers", "1 of 1"),
            ("/brokers/1", "metadata.version"),
            ("/brokers/quorum", "leader"),
            ("/brokers/moves", "Nothing moves."),
            ("/brokers/moves/new", "Which partition, and where to"),
            ("/brokers/quorum/1/remove", "Take the vote of node 1 away"),
            ("/brokers/balance", "nothing to move"),
            ("/brokers/features", "metadata.version"),
            ("/brokers/leaders", "preferred replicas lead everywhere"),
            ("/brokers/1/settings?q=cleaner", "log.cleaner.threads"),
        ):
            shown = guest.get(path)
            assert (shown.status, words in shown.words) == (200, True), (path, shown.words)
        page = "/brokers/1/settings/log.cleaner.threads"
        assert "number of background threads" in guest.get(page).words
        guest.send(page, f"{page}/set", value="2", scope="1")
        until(lambda: guest.get(page).words, lambda words: "set for this broker" in words)
        guest.send(page, f"{page}/set", reset="on", scope="1")
        until(lambda: guest.get(page).words, lambda words: "set for this broker" not in words)
