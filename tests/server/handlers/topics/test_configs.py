"""The handlers about settings, in every version: of topics, brokers, loggers, groups and client metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.admin import Admin

from ottla.cluster.commands.alter_configs import Op
from ottla.model.errors import ErrorCode
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.topics.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def admin() -> Admin:
    admin = Admin()
    admin.create("t", 1, retention_ms="5")
    return admin


def alter(admin: Admin, *resources: tuple[int, str, list[tuple[str, int, str | None]]], version: int = 1) -> Any:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    asked = [
        resource(
            resource_type=type,
            resource_name=name,
            configs=[
                resource.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in configs
            ],
        )
        for type, name, configs in resources
    ]
    answer = admin.ask(IncrementalAlterConfigsRequest(resources=asked, validate_only=False), version)
    return [(each.resource_type, each.resource_name, each.error_code) for each in answer.responses]


def describe(admin: Admin, type: int, name: str, *keys: str, version: int = 4, **more: bool) -> Any:
    resource = DescribeConfigsRequest.Resource(
        resource_type=type, resource_name=name, configuration_keys=list(keys) or None
    )
    (result,) = admin.ask(DescribeConfigsRequest(resources=[resource], **more), version).results
    return result


class TestDescribeConfigs:
    @pytest.mark.parametrize("version", range(1, 5))
    def test_every_version(self, admin: Admin, version: int) -> None:
        result = describe(admin, TOPIC, "t", "retention.ms", version=version)
        (entry,) = result.configs
        assert (entry.name, entry.value, entry.config_source, entry.read_only) == ("retention.ms", "5", 1, False)
        assert entry.config_type == (5 if version >= 3 else 0)

    def test_every_setting_is_listed(self, admin: Admin) -> None:
        topic = {entry.name for entry in describe(admin, TOPIC, "t").configs}
        assert len(topic) >= 32 and {"cleanup.policy", "ottla.fsync.before.ack"} <= topic
        broker = {entry.name: entry for entry in describe(admin, BROKER, "1").configs}
        assert len(broker) > 200
        assert broker["node.id"].read_only and broker["node.id"].config_source == 4
        assert broker["ssl.keystore.password"].is_sensitive and broker["ssl.keystore.password"].value is None

    def test_synonyms_and_documentation_on_wish(self, admin: Admin) -> None:
        alter(admin, (BROKER, "1", [("log.retention.ms", Op.SET, "9")]))
        (entry,) = describe(admin, TOPIC, "t", "retention.ms").configs
        assert entry.synonyms == [] and not entry.documentation
        (entry,) = describe(
            admin, TOPIC, "t", "retention.ms", include_synonyms=True, include_documentation=True
        ).configs
        found = [(each.name, each.value, each.source) for each in entry.synonyms]
        assert found == [("retention.ms", "5", 1), ("log.retention.ms", "9", 2), ("log.retention.hours", "168", 5)]
        assert entry.documentation

    @pytest.mark.parametrize(
        ("type", "name", "code"),
        [
            (TOPIC, "nope", 3),
            (TOPIC, "a b", 17),
            (BROKER, "7", 42),
            (BROKER, "x", 42),
            (LOGGER, "", 42),
            (LOGGER, "7", 42),
            (METRICS, "", 42),
            (GROUP, "", 42),
            (3, "x", 42),
        ],
    )
    def test_refused(self, admin: Admin, type: int, name: str, code: int) -> None:
        result = describe(admin, type, name)
        assert (result.error_code, result.resource_type, result.resource_name) == (code, type, name)
        assert result.configs == []

    def test_the_default_of_all_brokers(self, admin: Admin) -> None:
        result = describe(admin, BROKER, "")
        assert [(entry.name, entry.value, entry.config_source) for entry in result.configs] == [
            ("min.insync.replicas", "1", 3)
        ]

    def test_groups_and_subscriptions_need_not_exist(self, admin: Admin) -> None:
        (entry,) = describe(admin, GROUP, "g", "consumer.session.timeout.ms").configs
        assert (entry.value, entry.config_source) == ("45000", 5)
        (entry,) = describe(admin, METRICS, "m", "interval.ms").configs
        assert (entry.value, entry.config_source) == ("300000", 5)


@pytest.mark.parametrize("version", range(2))
def test_incremental_alter_configs(admin: Admin, version: int) -> None:
    assert alter(
        admin,
        (TOPIC, "t", [("retention.ms", Op.SET, "6"), ("cleanup.policy", Op.APPEND, "compact")]),
        (TOPIC, "nope", [("retention.ms", Op.SET, "6")]),
        (LOGGER, "1", [("ottla.server", Op.SET, "LOUD")]),
        (GROUP, "g", [("consumer.session.timeout.ms", Op.SET, "50000")]),
        version=version,
    ) == [(TOPIC, "t", 0), (TOPIC, "nope", 3), (LOGGER, "1", 40), (GROUP, "g", 0)]
    entries = describe(admin, TOPIC, "t", "retention.ms", "cleanup.policy").configs
    assert {entry.name: entry.value for entry in entries} == {"retention.ms": "6", "cleanup.policy": "delete,compact"}


@pytest.mark.parametrize("version", range(3))
def test_alter_configs(admin: Admin, version: int) -> None:
    resource = AlterConfigsRequest.Resource
    good = resource(
        resource_type=TOPIC, resource_name="t", configs=[resource.AlterableConfig(name="segment.ms", value="9")]
    )
    bad = resource(resource_type=LOGGER, resource_name="1", configs=[])
    answer = admin.ask(AlterConfigsRequest(resources=[good, bad], validate_only=False), version)
    assert [each.error_code for each in answer.responses] == [0, 42]
    assert admin.configs.overrides("t") == {"segment.ms": "9"}


class TestLoggers:
    @pytest.fixture(autouse=True)
    def _levels(self) -> Iterator[None]:
        logger = logging.getLogger("ottla.server")
        level = logger.level
        yield
        logger.setLevel(level)

    def test_levels_can_be_changed_and_are_shown(self, admin: Admin) -> None:
        assert alter(admin, (LOGGER, "1", [("ottla.server", Op.SET, "debug")])) == [(LOGGER, "1", 0)]
        assert logging.getLogger("ottla.server").level == logging.DEBUG
        (entry,) = describe(admin, LOGGER, "1", "ottla.server").configs
        assert (entry.value, entry.config_source, entry.config_type) == ("DEBUG", 6, 0)
        assert alter(admin, (LOGGER, "1", [("ottla.server", Op.DELETE, None)])) == [(LOGGER, "1", 0)]
        assert logging.getLogger("ottla.server").level == logging.NOTSET

    @pytest.mark.parametrize(
        ("name", "key", "op", "value", "code"),
        [
            ("1", "no.such.logger", Op.SET, "INFO", 40),
            ("1", "ottla.server", Op.APPEND, "INFO", 42),
            ("1", "ottla.server", 9, "INFO", 42),
            ("1", "root", Op.DELETE, None, 42),
            ("7", "ottla.server", Op.SET, "INFO", 42),
            ("", "ottla.server", Op.SET, "INFO", 42),
        ],
    )
    def test_refused(self, admin: Admin, name: str, key: str, op: int, value: str | None, code: int) -> None:
        assert alter(admin, (LOGGER, name, [(key, op, value)])) == [(LOGGER, name, code)]

    def test_one_resource_twice(self, admin: Admin) -> None:
        twice = (LOGGER, "1", [("ottla.server", int(Op.SET), "DEBUG")])
        assert alter(admin, twice, twice) == [(LOGGER, "1", 42)] * 2
        assert logging.getLogger("ottla.server").level != logging.DEBUG


def test_list_config_resources(admin: Admin) -> None:
    alter(admin, (GROUP, "g", [("consumer.session.timeout.ms", Op.SET, "50000")]))
    alter(admin, (METRICS, "m", [("interval.ms", Op.SET, "5000")]))

    def ask(*types: int, version: int = 1) -> Any:
        answer = admin.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
        return answer.error_code, [(each.resource_type, each.resource_name) for each in answer.config_resources]

    everything = [(TOPIC, "t"), (BROKER, "1"), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")]
    assert ask() == (0, everything)
    assert ask(GROUP, TOPIC) == (0, [(GROUP, "g"), (TOPIC, "t")])
    assert ask(version=0) == (0, [(METRICS, "m")])
    assert ask(3) == (ErrorCode.UNSUPPORTED_VERSION, [])
