"""Configs: the same request gets the same answer from Ottla as from a real Kafka, in every version."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side

from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.topics.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

# Where Ottla's answer about the broker differs on purpose.
OF_THE_MACHINE = {
    "advertised.listeners": "names the ports of each cluster",
    "listeners": "names the ports of each cluster",
    "controller.quorum.voters": "names the ports of each cluster",
    "log.dirs": "each has its own directory",
}


def describe(
    side: Side, version: int, kind: int, name: str, keys: list[str] | None = None, docs: bool = False
) -> Plain:
    resource = DescribeConfigsRequest.Resource(resource_type=kind, resource_name=name, configuration_keys=keys)
    return side.call(
        DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=docs), version
    )


def configs(answer: Plain) -> dict[str, Plain]:
    """The first resource's configs by name, without the words of the documentation."""
    entries = answer["results"][0]["configs"]
    return {entry["name"]: entry | {"documentation": bool(entry.get("documentation"))} for entry in entries}


@pytest.mark.parametrize("version", versions_of(DescribeConfigsRequest))
def test_describe_topic(both: Both, new_name: Names, version: int) -> None:
    name = new_name("configs")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"retention.ms": "7200000", "cleanup.policy": "compact,delete"})
        yield configs(describe(side, version, TOPIC, name, docs=version >= 3))
        yield describe(side, version, TOPIC, name, ["retention.ms", "no.such.config", "segment.bytes"])
        yield describe(side, version, TOPIC, name, [])
        yield describe(side, version, TOPIC, name + "-never")
        yield describe(side, version, TOPIC, "not good")
        yield describe(side, version, TOPIC, "")

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeConfigsRequest))
def test_describe_broker(both: Both, version: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        found = configs(describe(side, version, BROKER, "1", docs=version >= 3))
        for name in OF_THE_MACHINE:
            found[name] = {key: value for key, value in found[name].items() if key not in ("value", "synonyms")}
        yield found
        yield describe(side, version, BROKER, "1", ["log.retention.hours", "no.such.config"])

    both.same(script)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (BROKER, ""),
        (BROKER, "2"),
        (BROKER, "one"),
        (GROUP, "some-group"),
        (GROUP, ""),
        (CLIENT_METRICS, "some-subscription"),
        (CLIENT_METRICS, ""),
        (BROKER_LOGGER, "2"),
        (BROKER_LOGGER, "x"),
        (0, "x"),
        (77, "x"),
    ],
)
def test_describe_others(both: Both, kind: int, name: str) -> None:
    def script(side: Side) -> Iterator[Plain]:
        for version in versions_of(DescribeConfigsRequest):
            yield describe(side, version, kind, name)

    both.same(script)


def alter(
    side: Side, version: int, kind: int, name: str, *changes: tuple[int, str, str | None], dry: bool = False
) -> Plain:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    entries = [
        resource.AlterableConfig(name=config, config_operation=operation, value=value)
        for operation, config, value in changes
    ]
    wanted = resource(resource_type=kind, resource_name=name, configs=entries)
    return side.call(IncrementalAlterConfigsRequest(resources=[wanted], validate_only=dry), version)


@pytest.mark.parametrize("version", versions_of(IncrementalAlterConfigsRequest))
def test_incremental_alter_topic(both: Both, new_name: Names, version: int) -> None:
    name = new_name("alter")

    def script(side: Side) -> Iterator[Plain]:
        side.create(name)

        def change(*changes: tuple[int, str, str | None], dry: bool = False) -> Iterator[Plain]:
            yield alter(side, version, TOPIC, name, *changes, dry=dry)
            side.settle()
            yield describe(side, 4, TOPIC, name, ["retention.ms", "cleanup.policy", "max.message.bytes"])

        yield from change((SET, "retention.ms", "1234567"), dry=True)
        yield from change((SET, "retention.ms", "1234567"), (SET, "max.message.bytes", "999"))
        yield from change((APPEND, "cleanup.policy", "compact"))
        yield from change((APPEND, "cleanup.policy", "compact"))  # already there
        yield from change((SUBTRACT, "cleanup.policy", "delete"))
        yield from change((SUBTRACT, "cleanup.policy", "compact"))  # nothing left
        yield from change((SET, "cleanup.policy", "delete,compact"))
        yield from change((DELETE, "cleanup.policy", None))
        yield from change((DELETE, "cleanup.policy", None))  # not set
        yield from change((DELETE, "retention.ms", "ignored"))
        # Refused, each of them whole:
        yield from change((SET, "retention.ms", "soon"))
        yield from change((SET, "retention.ms", None))
        yield from change((SET, "no.such.config", "1"))
        yield from change((DELETE, "no.such.config", None))
        yield from change((APPEND, "retention.ms", "1"))
        yield from change((SUBTRACT, "retention.ms", "1"))
        yield from change((APPEND, "cleanup.policy", None))
        yield from change((APPEND, "cleanup.policy", "burn"))
        yield from change((SET, "retention.ms", "1"), (SET, "retention.ms", "2"))
        yield from change((SET, "retention.ms", "5555555"), (SET, "segment.bytes", "1"))
        yield from change((SET, "min.compaction.lag.ms", "10"), (SET, "max.compaction.lag.ms", "1"))
        yield from change()

    both.same(script)


@pytest.mark.parametrize(
    ("kind", "name", "config", "value"),
    [
        (TOPIC, "never-made", "retention.ms", "1"),
        (TOPIC, "", "retention.ms", "1"),
        (TOPIC, "not good", "retention.ms", "1"),
        (BROKER, "1", "log.retention.ms", "x"),
        (BROKER, "1", "log.dirs", "elsewhere"),
        (BROKER, "1", "num.partitions", "0"),
        (BROKER, "2", "log.cleaner.threads", "2"),
        (BROKER, "one", "log.cleaner.threads", "2"),
        (BROKER, "", "log.cleaner.threads", "many"),
        (GROUP, "", "consumer.session.timeout.ms", "45000"),
        (CLIENT_METRICS, "", "interval.ms", "100"),
        (CLIENT_METRICS, "m", "interval.ms", "1"),
        (CLIENT_METRICS, "m", "match", "not-a-pattern"),
        (CLIENT_METRICS, "m", "no.such", "1"),
        (GROUP, "g", "consumer.session.timeout.ms", "1"),
        (GROUP, "g", "no.such", "1"),
        (0, "x", "a", "b"),
        (77, "x", "a", "b"),
    ],
)
def test_incremental_alter_refused(both: Both, kind: int, name: str, config: str, value: str) -> None:
    def script(side: Side) -> Iterator[Plain]:
        for dry in (True, False):
            yield alter(side, 1, kind, name, (SET, config, value), dry=dry)

    both.same(script)


def test_incremental_alter_several_resources(both: Both, new_name: Names) -> None:
    """One bad resource does not hurt the others; a resource named twice is an error of both."""
    name = new_name("several")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def script(side: Side) -> Iterator[Plain]:
        for end in "abc":
            side.create(name + end)

        def one(end: str, value: str) -> IncrementalAlterConfigsRequest.AlterConfigsResource:
            config = resource.AlterableConfig(name="retention.ms", config_operation=SET, value=value)
            return resource(resource_type=TOPIC, resource_name=name + end, configs=[config])

        wanted = [one("a", "111111"), one("b", "x"), one("c", "333333"), one("never", "1")]
        yield side.call(IncrementalAlterConfigsRequest(resources=wanted, validate_only=False), 1)
        side.settle()
        yield [describe(side, 4, TOPIC, name + end, ["retention.ms"]) for end in "abc"]
        wanted = [one("a", "444444"), one("a", "555555"), one("c", "666666")]
        yield side.call(IncrementalAlterConfigsRequest(resources=wanted, validate_only=False), 1)
        side.settle()
        yield [describe(side, 4, TOPIC, name + end, ["retention.ms"]) for end in "abc"]

    both.same(script)


@pytest.mark.parametrize("version", versions_of(AlterConfigsRequest))
def test_alter_topic(both: Both, new_name: Names, version: int) -> None:
    """The legacy call replaces all of a resource's configs."""
    name = new_name("legacy")
    resource = AlterConfigsRequest.Resource

    def script(side: Side) -> Iterator[Plain]:
        side.create(name, **{"retention.ms": "7200000", "max.message.bytes": "5555"})

        def replace(dry: bool = False, **values: str | None) -> Iterator[Plain]:
            entries = [resource.AlterableConfig(name=key, value=value) for key, value in values.items()]
            wanted = resource(resource_type=TOPIC, resource_name=name, configs=entries)
            yield side.call(AlterConfigsRequest(resources=[wanted], validate_only=dry), version)
            side.settle()
            yield describe(side, 4, TOPIC, name, ["retention.ms", "max.message.bytes", "segment.ms"])

        yield from replace(dry=True, **{"segment.ms": "4444444"})
        yield from replace(**{"segment.ms": "4444444", "retention.ms": "8888888"})
        yield from replace(**{"segment.ms": "x"})
        yield from replace(**{"segment.ms": None})
        yield from replace(**{"no.such": "1"})
        yield from replace()
        unknown = resource(resource_type=TOPIC, resource_name=name + "-never", configs=[])
        yield side.call(AlterConfigsRequest(resources=[unknown], validate_only=False), version)

    both.same(script)


def test_list_config_resources(both: Both, new_name: Names) -> None:
    def script(side: Side) -> Iterator[Plain]:
        yield side.call(ListConfigResourcesRequest(), 0)
        for types in ([], [BROKER], [BROKER_LOGGER], [CLIENT_METRICS], [GROUP], [77], [BROKER, 77], [0]):
            answer = side.call(ListConfigResourcesRequest(resource_types=types), 1)
            # Which topics exist depends on the tests before; internal topics come when they are first used.
            answer["config_resources"] = [each for each in answer["config_resources"] if each["resource_type"] != TOPIC]
            yield answer
        answer = side.call(ListConfigResourcesRequest(resource_types=[TOPIC]), 1)
        yield answer["error_code"]

    both.same(script)
