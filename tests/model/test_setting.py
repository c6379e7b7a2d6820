"""Settings: parsing, checking and rendering, in Kafka's form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripts.settings_table import settings_table
from scripts.settings_that_matter import THAT_MATTER

from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.client_metrics_settings import CLIENT_METRICS_SETTINGS
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.group_settings import GROUP_SETTINGS
from ottla.model.setting import REQUIRED, Dynamic, Setting, SettingKind, java_double, parse_list
from ottla.model.topic_settings import TOPIC_SETTINGS

ALL: list[Setting[Any]] = [
    setting
    for settings in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS, CLIENT_METRICS_SETTINGS)
    for setting in settings.values()
]


def problem(setting: Setting[Any], text: str) -> str | None:
    try:
        setting.parse(text)
    except ApiError as error:
        return error.message
    return None


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.name)
def test_every_default_is_valid_and_reads_back(setting: Setting[Any]) -> None:
    text = setting.render(setting.default)
    if text is None:
        assert setting.default in (None, REQUIRED)
    else:
        assert setting.parse(text) == setting.default
    assert setting.doc.endswith(".") and len(setting.doc) < 120


def test_the_counts_are_kafkas() -> None:
    def kafkas(settings: dict[str, Setting[Any]]) -> list[str]:
        return [name for name, setting in settings.items() if not name.startswith("ottla.") and not setting.of_plugin]

    # 360 in the broker's definition, and three that can only be set dynamically
    assert len(kafkas(BROKER_SETTINGS)) == 363
    assert len(kafkas(TOPIC_SETTINGS)) == 34
    assert len(kafkas(GROUP_SETTINGS)) == 17
    assert len(CLIENT_METRICS_SETTINGS) == 3
    dynamic = [name for name in kafkas(BROKER_SETTINGS) if BROKER_SETTINGS[name].dynamic is not Dynamic.READ_ONLY]
    assert len(dynamic) == 102


def test_synonyms_and_what_is_followed_are_broker_settings() -> None:
    for setting in ALL:
        assert set(setting.synonyms) <= BROKER_SETTINGS.keys()
        assert {each.name for each in setting.follows} <= BROKER_SETTINGS.keys()


def test_a_followed_setting_declares_its_follower() -> None:
    for setting in (*TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()):
        for followed in setting.follows:
            assert setting.honoured == followed.honoured, setting.name


def test_the_page_names_every_public_setting() -> None:
    page = settings_table()
    assert all(f"| `{setting.name}` |" in page for setting in ALL if not setting.internal)


def test_the_page_begins_with_the_settings_that_matter() -> None:
    first = [setting for group in THAT_MATTER.values() for setting, _ in group]
    assert len(set(first)) == len(first) <= 40
    needed_on_a_network = {"listener.security.protocol.map", "ssl.keystore.location", "ssl.client.auth"}
    needed_on_a_network |= {"sasl.enabled.mechanisms", "authorizer.class.name", "super.users"}
    assert needed_on_a_network <= {setting.name for setting in first}
    assert all(setting.honoured and not setting.internal for setting in first)
    page = settings_table()
    assert all(f"| `{setting.name}`" in page[: page.index("## Brokers")] for setting in first)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("retention.ms", "-5", "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            "retention.ms",
            "9" * 20,
            f"Invalid value {'9' * 20} for configuration retention.ms: Not a number of type LONG",
        ),
        ("segment.bytes", "1.5", "Invalid value 1.5 for configuration segment.bytes: Not a number of type INT"),
        (
            "max.message.bytes",
            "0x10",
            "Invalid value 0x10 for configuration max.message.bytes: Not a number of type INT",
        ),
        (
            "cleanup.policy",
            "foo",
            "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ("cleanup.policy", "delete,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            "compression.type",
            "foo",
            "Invalid value foo for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "compression.gzip.level",
            "10",
            "Invalid value 10 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            "compression.zstd.level",
            "23",
            "Invalid value 23 for configuration compression.zstd.level: Value must be no more than 22",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "leader.replication.throttled.replicas",
            "x",
            "Invalid value [x] for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following "
            "format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        ("cleanup.policy", "", None),
        ("cleanup.policy", " delete , compact ", None),
        ("preallocate", " TRUE ", None),
        ("max.message.bytes", " +5 ", None),
        ("leader.replication.throttled.replicas", "0:1,1:2", None),
    ],
)
def test_topic_values_are_judged_as_a_real_broker_does(name: str, text: str, message: str | None) -> None:
    assert problem(TOPIC_SETTINGS[name], text) == message


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "process.roles",
            "",
            "Configuration 'process.roles' must not be empty. Valid values include: [broker, controller]",
        ),
        ("listeners", "", "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
        ("group.consumer.migration.policy", "Upgrade", None),
        (
            "group.consumer.migration.policy",
            "zz",
            "Invalid value zz for configuration group.consumer.migration.policy: "
            "String must be one of (case insensitive): DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL",
        ),
        ("controller.quorum.voters", "1@localhost:9093,2@[::1]:9093", None),
        (
            "controller.quorum.voters",
            "localhost:9093",
            "Invalid configuration value for controller.quorum.voters. "
            "Each entry should be in the form `{id}@{host}:{port}`.",
        ),
        ("controller.quorum.bootstrap.servers", "localhost:9093", None),
        (
            "controller.quorum.bootstrap.servers",
            "zz",
            "Failed to parse host name from zz for the configuration controller.quorum.bootstrap.servers. "
            'Each entry should be in the form "{host}:{port}"',
        ),
        ("max.connections.per.ip.overrides", "10.0.0.1:5, ::1:7", None),
        (
            "remote.log.storage.manager.impl.prefix",
            " ",
            "Invalid value  for configuration remote.log.storage.manager.impl.prefix: String must be non-empty",
        ),
        (
            "offsets.topic.replication.factor",
            "40000",
            "Invalid value 40000 for configuration offsets.topic.replication.factor: Not a number of type SHORT",
        ),
    ],
)
def test_broker_values_are_judged_as_a_real_broker_does(name: str, text: str, message: str | None) -> None:
    assert problem(BROKER_SETTINGS[name], text) == message


@pytest.mark.parametrize("text", ["PT1H", "P1D", "pt1h", "PT0.5S", "+PT1S", "P1DT2H3M4.5S", "PT5.S"])
def test_share_groups_may_start_a_duration_ago(text: str) -> None:
    assert problem(GROUP_SETTINGS["share.auto.offset.reset"], f"by_duration:{text}") is None


@pytest.mark.parametrize("text", ["P", "PT", "P1DT", "PT.5S", "PT-1S", "-PT1H", "PT1M1H", "P1W", "", "PT1H:x"])
def test_share_groups_may_not_start_at_nonsense(text: str) -> None:
    message = problem(GROUP_SETTINGS["share.auto.offset.reset"], f"by_duration:{text}")
    assert message is not None and "must be either 'earliest', 'latest'" in message


@given(st.lists(st.text("abc.-", min_size=1, max_size=4), max_size=5, unique=True))
def test_lists_round_trip(items: list[str]) -> None:
    setting: Setting[tuple[str, ...]] = Setting("a.list", SettingKind.LIST, (), "A list.")
    text = setting.render(tuple(items))
    assert text is not None and setting.parse(text) == tuple(items)


def test_repeated_items_count_once() -> None:
    assert parse_list("PLAIN, PLAIN,GSSAPI") == ("PLAIN", "GSSAPI")


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs_round_trip(number: int) -> None:
    setting: Setting[int] = Setting("a.long", SettingKind.LONG, 0, "A long.")
    text = setting.render(number)
    assert text is not None and setting.parse(text) == number


@given(st.floats(allow_nan=False))
def test_doubles_round_trip(number: float) -> None:
    setting: Setting[float] = Setting("a.double", SettingKind.DOUBLE, 0.0, "A double.")
    text = setting.render(number)
    assert text is not None and setting.parse(text) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "0.5"),
        (1e7, "1.0E7"),
        (1e-4, "1.0E-4"),
        (123456789.0, "1.23456789E8"),
        (1e21, "1.0E21"),
        (0.001, "0.001"),
        (-12345678.9, "-1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_look_like_javas(number: float, text: str) -> None:
    assert java_double(number) == text


def test_bad_values_have_one_code() -> None:
    with pytest.raises(ApiError) as caught:
        TOPIC_SETTINGS["retention.ms"].parse("x")
    assert caught.value.code is ErrorCode.INVALID_CONFIG


@given(st.sampled_from(ALL), st.text(max_size=20))
def test_no_text_breaks_a_parser(setting: Setting[Any], text: str) -> None:
    problem(setting, text)
