"""Registrations that are not to be had: a broker that nobody registers, controllers before there were such records."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.test_three_nodes import ask, run, settings

from ottla.cluster.snapshot import feature
from ottla.model.errors import ApiError, ErrorCode
from ottla.server import member
from ottla.server.node import Node, system_ports
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest


def test_a_broker_that_nobody_registers_ends_and_says_why(tmp_path: Path) -> None:
    async def test() -> None:
        (values, *_) = settings(tmp_path, 3, initial_broker_registration_timeout_ms="300")
        node = Node(values, system_ports(values))
        try:
            with pytest.raises(ApiError, match=r"broker 1 was not registered within 300 ms .*no controller answers"):
                await node.start()
        finally:
            await node.stop()

    run(test)


def test_controllers_are_not_registered_before_3_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_bootstrap", lambda _: (feature("metadata.version", 14),))

    async def test() -> None:
        (values,) = settings(tmp_path, 1)
        node = Node(values, system_ports(values))
        try:
            await node.start()
            request = ControllerRegistrationRequest(
                controller_id=7, incarnation_id=bytes(16), zk_migration_ready=False, listeners=[], features=[]
            )
            answer = await ask(node, request, "CONTROLLER")
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert "too old to support controller registrations" in answer.error_message
            assert not node.metadata.state.controllers
        finally:
            await node.stop()

    run(test)
