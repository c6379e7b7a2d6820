"""Every main action of the console, done in a real browser, and its effect on a live cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from playwright.sync_api import Browser, expect
from tests.compat.chromium.browser import PATIENCE_MS, Tab, fine, opened
from tests.console.consoles import running_console
from tests.console.pages.groups.people import member
from tests.console.pages.transactions.test_transactions import opened as opened_transaction
from tests.support import tools
from tests.support.waiting import until

from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.ranges import ConsumedRecord, Span
from ottla.client.registry import RegistryOptions, SchemaRegistry
from ottla.client.registry_calls import level_of
from ottla.console.html import path_to
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.schemas.schema import SchemaSource
from ottla.testing.broker import EmbeddedBroker

EVIL = '<script>alert(1)</script>"><img src=x onerror="alert(2)">'
LETTER = {"topic": "orders", "partition": "0", "offset": "7", "timestamp": "1000", "reason": "schema"}
STARTED = '{"type":"record","name":"O","fields":[{"name":"id","type":"long"}]}'
WIDENED = (
    '{"type":"record","name":"O","fields":[{"name":"id","type":"long"},{"name":"more","type":"string","default":""}]}'
)
NARROWED = '{"type":"record","name":"O","fields":[{"name":"id","type":"int"},{"name":"must","type":"string"}]}'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    tools.require(tools.missing_browser())
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), {"num.partitions": "1"}) as broker:
        yield broker


@pytest.fixture(scope="module")
def cluster(broker: EmbeddedBroker) -> Iterator[Blocking]:
    with Blocking(broker.bootstrap) as cluster:
        cluster.admin.topics.create("orders", 2)
        cluster.send_all("orders", [(b"k%d" % (number % 5), b'{"n": %d}' % number) for number in range(200)])
        yield cluster


@pytest.fixture(scope="module")
def registry(broker: EmbeddedBroker) -> SchemaRegistry:
    return SchemaRegistry(RegistryOptions.of(broker.registry.url))


@pytest.fixture(scope="module")
def served(broker: EmbeddedBroker, cluster: Blocking) -> Iterator[str]:
    registry = RegistryOptions.of(broker.registry.url)
    with running_console(ConsoleOptions(broker.bootstrap, port=0, registry=registry)) as console:
        yield console.url


@pytest.fixture
def tab(browser: Browser, served: str) -> Iterator[Tab]:
    with opened(browser, served) as tab:
        yield tab


def records(cluster: Blocking, topic: str) -> list[ConsumedRecord]:
    count = cluster.admin.topics.describe(topic).partition_count
    return list(cluster.iterate(cluster.ranges([Span(topic, index) for index in range(count)]).records()))


def setting(cluster: Blocking, resource: Resource, name: str) -> tuple[str | None, bool]:
    (found,) = cluster.admin.configs.describe(resource, [name])
    return found.value, found.is_default


def checked(tab: Tab, path: str) -> None:
    """Open a page, which is as all pages should be."""
    fine(path, tab.go(path), tab)


def sent(tab: Tab, words: str) -> None:
    """After a form was sent: the page says so, and is fine."""
    assert words in tab.words(), tab.words()[:2_000]
    fine(tab.page.url, tab.look(), tab)


def test_a_topic_from_its_creation_to_its_deletion(tab: Tab, cluster: Blocking) -> None:
    checked(tab, "/topics/+new")
    tab.fill("/topics/%2Bnew", name=EVIL, partitions="3", settings="retention.ms=1000")
    assert tab.page.input_value('[name="name"]') == EVIL, "what was typed is kept"
    assert tab.page.input_value('[name="partitions"]') == "3"
    fine("refused", tab.look(), tab)
    tab.page.fill('[name="name"]', "made")
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.press('[name="name"]', "Enter")
    sent(tab, "Topic made was created")
    assert cluster.admin.topics.describe("made").partition_count == 3

    checked(tab, "/topics/made/settings/retention.ms")
    tab.fill("/topics/made/settings/retention.ms", value="much")
    assert tab.page.input_value('[name="value"]') == "much" and tab.page.locator(".notice.bad").count()
    tab.fill("/topics/made/settings/retention.ms", value="7200000")
    sent(tab, "retention.ms of made is now 7200000")
    assert setting(cluster, Resource.topic("made"), "retention.ms") == ("7200000", False)
    checked(tab, "/topics/made/settings/retention.ms")
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.get_by_role("button", name="Reset to its default").click()
    sent(tab, "was reset to its default")
    assert setting(cluster, Resource.topic("made"), "retention.ms")[1]

    checked(tab, "/topics/made/partitions")
    tab.fill("/topics/made/partitions", total="2")
    assert tab.page.locator(".notice.bad").count() and tab.page.input_value('[name="total"]') == "2"
    tab.fill("/topics/made/partitions", total="5")
    sent(tab, "now has 5 partitions")
    assert cluster.admin.topics.describe("made").partition_count == 5

    checked(tab, "/topics/made/delete")
    tab.fill("/topics/made/delete", name="mad")
    assert "made" in cluster.admin.topics.names() and "not the topic's" in tab.words()
    checked(tab, "/topics/made/delete")
    tab.fill("/topics/made/delete", name="made")
    sent(tab, "Topic made was deleted")
    until(lambda: cluster.admin.topics.names(), lambda names: "made" not in names)


def test_records_are_produced_browsed_and_deleted(tab: Tab, cluster: Blocking, registry: SchemaRegistry) -> None:
    cluster.admin.topics.create("typed", 1)
    produce = "/topics/typed/produce"
    checked(tab, produce)
    tab.fill(produce, value_format="json", value="{wrong")
    assert tab.page.input_value('[name="value"]') == "{wrong" and tab.page.locator(".notice.bad").count()
    tab.fill(produce, value_format="json", value='{"a": 1}', key_format="text", key="one")
    sent(tab, "offset 0")
    checked(tab, produce)
    tab.fill(produce, value_format="text", value=EVIL, headers=f"h={EVIL}")
    sent(tab, "offset 1")
    registry.register("typed-value", SchemaSource(STARTED))
    checked(tab, produce)
    tab.fill(produce, value_format="registry", value='{"id": "x"}')
    assert tab.page.locator(".notice.bad").count(), "it is not what the schema says"
    tab.fill(produce, value_format="registry", value='{"id": 21}')
    sent(tab, "21")
    checked(tab, produce)
    tab.fill(produce, value_format="null", key_format="text", key="gone")
    sent(tab, "tombstone")
    found = records(cluster, "typed")
    assert [each.key for each in found] == [b"one", None, None, b"gone"]
    assert [each.value for each in found][1] == EVIL.encode() and found[2].value is not None and found[3].value is None
    assert found[2].value.startswith(b"\0") and found[2].value.endswith(b"\x2a")

    checked(tab, "/topics/typed/records")
    assert tab.page.locator("main tbody tr").count() == 4
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.locator('a[href^="/topics/typed/records/0/1"]').first.click()
    sent(tab, EVIL)
    tab.keep("record")

    checked(tab, "/topics/typed/delete-records?before=offset&offset=3")
    tab.fill("/topics/typed/delete-records/now", name="typed")
    sent(tab, "were deleted")
    assert cluster.admin.topics.bounds("typed")[0].start == 3


def test_a_search_shows_its_progress_and_can_be_stopped(tab: Tab, cluster: Blocking, broker: EmbeddedBroker) -> None:
    cluster.admin.topics.create("long", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20})
    for number in range(60_000):
        producer.produce("long", b"%08d" % number + b"x" * 1_000, partition=0)
        if not number % 10_000:
            producer.flush(60)
    assert producer.flush(60) == 0
    checked(tab, "/topics/orders/search")
    tab.page.select_option('[name="in"]', "value")
    tab.page.fill('main [name="text"]', '"n": 77')
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.press('main [name="text"]', "Enter")
    tab.page.get_by_text("The search is over.").wait_for()
    assert tab.page.locator("#found tr").count() == 1 and '{"n":77}' in tab.words()
    assert not tab.page.locator("button.stop").is_visible()
    fine("found", tab.look(), tab)
    broker.fail("FETCH", times=None, delay="300ms")  # so that it lasts
    try:
        checked(tab, "/topics/long/search?in=value&text=nowhere")
        tab.page.locator("#progress progress").wait_for()
        tab.page.locator("button.stop").click()
        tab.page.locator("button.stop").wait_for(state="hidden")
    finally:
        broker.heal()
    assert "The search is over" not in tab.words() and "Nothing was found" not in tab.words()


def test_the_live_tail_shows_a_new_record(tab: Tab, cluster: Blocking) -> None:
    cluster.admin.topics.create("tail", 1)
    checked(tab, "/topics/tail/live")
    cluster.send("tail", b"it has just come " + EVIL.encode())
    tab.page.get_by_text("it has just come").first.wait_for()


def test_offsets_of_a_group_are_reset_as_the_preview_shows(tab: Tab, cluster: Blocking) -> None:
    places = [TopicPartition("orders", index) for index in (0, 1)]
    cluster.admin.groups.set_offsets("billing", dict.fromkeys(places, 5))
    checked(tab, "/groups/billing/reset")
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.get_by_role("button", name="Preview").click()
    sent(tab, "5 records are read again")
    tab.keep("reset")
    assert {each.offset for each in cluster.admin.groups.offsets("billing").values()} == {5}, (
        "a preview changes nothing"
    )
    tab.fill("/groups/billing/reset")
    sent(tab, "goes on from the new offsets in 2 partitions")
    assert {each.offset for each in cluster.admin.groups.offsets("billing").values()} == {0}

    checked(tab, "/groups/billing/lag?seconds=1")
    tab.page.locator("#found .card").first.wait_for()
    assert "no consumer" in tab.words()
    fine("lag", tab.look(), tab)
    tab.keep("lag")
    checked(tab, "/groups/billing/rebalances")

    checked(tab, "/groups/billing/delete")
    tab.fill("/groups/billing/delete", name="bill")
    assert "nothing was deleted" in tab.words()
    checked(tab, "/groups/billing/delete")
    tab.fill("/groups/billing/delete", name="billing")
    sent(tab, "Group billing was deleted")
    assert "billing" not in {each.group_id for each in cluster.admin.groups.all()}


def test_a_rebalance_is_explained(tab: Tab, broker: EmbeddedBroker) -> None:
    with member(broker.bootstrap, "turning", "orders"):
        tab.page.wait_for_timeout(200)
        checked(tab, "/groups/turning/rebalances")
        assert "reader" in tab.words() and "joined" in tab.words()
        checked(tab, "/groups/turning/reset")
        assert "which would commit over them" in tab.words()


def test_dead_letters_are_sent_back_and_edited(tab: Tab, cluster: Blocking) -> None:
    cluster.admin.topics.create("orders.dlq", 1)
    cluster.admin.topics.create("mended", 1)
    for value in (b"first", EVIL.encode()):
        said = [(f"ottla.dlq.{name}", text.encode()) for name, text in {**LETTER, "topic": "mended"}.items()]
        cluster.run(cluster.inner.send("orders.dlq", value, headers=said))
    checked(tab, "/letters/orders.dlq")
    tab.page.get_by_label("choose 0:0").check()
    tab.fill("/letters/orders.dlq/preview")
    sent(tab, "Send exactly these")
    assert not records(cluster, "mended")
    tab.fill("/letters/orders.dlq/redrive")
    sent(tab, "1 of 1 letters were sent")
    checked(tab, "/letters/orders.dlq/0/1/edit")
    tab.fill("/letters/orders.dlq/0/1/send", topic="mended", value="good now", headers="h")
    assert tab.page.input_value('[name="value"]') == "good now", "what was typed is kept"
    tab.fill("/letters/orders.dlq/0/1/send", headers="h=mended")
    sent(tab, "it is at offset 1 of mended-0")
    assert [each.value for each in records(cluster, "mended")] == [b"first", b"good now"]


def test_an_open_transaction_is_aborted(tab: Tab, cluster: Blocking, broker: EmbeddedBroker) -> None:
    cluster.admin.topics.create("paid", 1)
    with opened_transaction({"bootstrap.servers": broker.bootstrap}, "pay", "paid") as producer:
        checked(tab, "/transactions")
        with tab.page.expect_navigation(wait_until="load"):
            tab.page.get_by_role("link", name="pay", exact=True).first.click()
        with tab.page.expect_navigation(wait_until="load"):
            tab.page.get_by_role("link", name="See what an abort would do").click()
        tab.fill("/transactions/pay/abort", reason="ticket 7", name="pay")
        sent(tab, "is aborted, and its producer fenced")
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
    (left,) = cluster.admin.topics.producers(TopicPartition("paid", 0))
    assert left.current_txn_start_offset < 0


def test_schemas_are_registered_compared_and_refused(tab: Tab, registry: SchemaRegistry) -> None:
    checked(tab, "/schemas/-/new")
    tab.fill("/schemas/-/new", subject="held-value", schema="{")
    assert tab.page.input_value('[name="subject"]') == "held-value" and tab.page.locator(".notice.bad").count()
    tab.fill("/schemas/-/new", schema=STARTED)
    sent(tab, "Version 1 of held-value is registered")
    checked(tab, "/schemas/held-value/register")
    tab.fill("/schemas/held-value/check", schema=NARROWED)
    sent(tab, "not compatible with what is registered")
    assert "must" in tab.page.inner_text("main ul"), "the reason names the field"
    tab.fill("/schemas/held-value/check", schema=WIDENED)
    sent(tab, "compatible: this schema can be registered")
    tab.fill("/schemas/held-value/register")
    sent(tab, "Version 2 of held-value is registered")
    assert registry.call("GET", "subjects", "held-value", "versions") == [1, 2]
    checked(tab, "/schemas/held-value/diff")
    assert tab.page.locator(".added").count()
    checked(tab, "/schemas/held-value/level")
    tab.fill("/schemas/held-value/level", level="FULL")
    sent(tab, "The compatibility level of held-value is FULL")
    assert level_of(registry, "held-value").level == "FULL"


def test_a_contract_is_set(tab: Tab, cluster: Blocking) -> None:
    cluster.admin.topics.create("kept", 1)
    checked(tab, "/contracts/kept")
    tab.fill("/contracts/kept/preview", check="id", failing="dlq")
    sent(tab, "kept-value is not registered")
    assert setting(cluster, Resource.topic("kept"), "ottla.schema.validation")[1], "a preview changes nothing"
    tab.fill("/contracts/kept/change")
    sent(tab, "The contract of kept was changed")
    assert setting(cluster, Resource.topic("kept"), "ottla.schema.validation") == ("id", False)
    assert setting(cluster, Resource.topic("kept"), "ottla.schema.validation.action") == ("dlq", False)


def test_sql_is_asked_drawn_and_kept_as_a_file(tab: Tab, cluster: Blocking, tmp_path: Path) -> None:
    checked(tab, "/sql")
    tab.page.fill('[name="query"]', "select key, count(*) n from topic('orders') group by key order by key")
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.get_by_role("button", name="Run").click()
    tab.page.get_by_text("Draw the result").wait_for()
    assert tab.page.locator("#sql-body tr").count() == 5
    with tab.page.expect_download() as loading:
        tab.page.get_by_role("link", name="CSV").click()
    loading.value.save_as(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().splitlines()[:2] == ['"key","n"', '"k0",40']
    tab.page.get_by_text("Draw the result").click()
    tab.page.select_option('[name="chart"]', "bar")
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.get_by_role("button", name="Draw").click()
    tab.page.locator("#sql-chart svg").first.wait_for()
    assert tab.page.locator("#sql-chart rect").count() >= 5
    fine("chart", tab.look(), tab)
    tab.keep("sql")
    secret = tmp_path / "secret.csv"
    secret.write_text("word\nTOPSECRET\n")
    checked(tab, path_to("sql", query=f"select * from read_csv('{secret}')"))
    tab.page.locator("#failed .notice.bad").wait_for()
    assert "TOPSECRET" not in tab.words()


def test_a_broker_setting_is_changed_while_it_runs(tab: Tab, cluster: Blocking) -> None:
    page = "/brokers/1/settings/log.retention.ms"
    checked(tab, page)
    tab.fill(f"{page}/set", value="3600000")
    sent(tab, "log.retention.ms of broker 1 is set")
    assert setting(cluster, Resource.broker(1), "log.retention.ms") == ("3600000", False)
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.get_by_role("button", name="Back to the default").click()
    sent(tab, "is no longer set")
    assert setting(cluster, Resource.broker(1), "log.retention.ms")[0] != "3600000"


def test_quotas_are_set_and_removed(tab: Tab, cluster: Blocking) -> None:
    checked(tab, "/access/quotas")
    tab.fill("/access/quotas/set", user="carla", quota="producer_byte_rate", value="2MiB")
    sent(tab, "producer_byte_rate of user carla is 2MiB")
    assert {str(each): values for each, values in cluster.admin.quotas.describe().items()} == {
        "user carla": {"producer_byte_rate": 2 * 1024**2}
    }
    tab.fill("/access/quotas/remove")
    sent(tab, "was removed")
    assert not cluster.admin.quotas.describe()


def test_a_refused_form_keeps_what_was_typed_and_shows_where(tab: Tab, registry: SchemaRegistry) -> None:
    tab.go("/schemas/-/new")
    tab.fill("/schemas/-/new", subject="kept-value", schema=f"{{{EVIL}", references="a")
    assert (
        tab.page.input_value("[name=schema]") == f"{{{EVIL}" and tab.page.input_value("[name=subject]") == "kept-value"
    )
    assert tab.page.get_attribute("[name=references]", "aria-invalid") == "true"
    assert tab.page.evaluate("document.activeElement.name") == "references", "typing goes on there"
    found = tab.look()
    assert (found["hacked"], found["violations"], found["overflow"]) == (False, [], 0)
    tab.fill("/schemas/-/new", schema=STARTED, references="")
    assert "Version 1 of kept-value is registered" in tab.words()
    assert "kept-value" in registry.subjects()


def test_totals_of_a_topic_are_renewed(tab: Tab, cluster: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_TOTALS_EVERY_S", 1)
    cluster.admin.topics.create("sold", 1)
    cluster.send_all("sold", [(b"", b'{"shop": "%s", "cents": 5}' % shop) for shop in (b"a", b"b", b"a")])
    found = tab.go("/topics/sold/totals")
    fine("/topics/sold/totals", found, tab)
    form = tab.page.locator('form[action="/topics/sold/totals"]')
    form.locator("[name=by]").fill("shop")
    form.locator("[name=sum]").fill("cents")
    with tab.page.expect_navigation(wait_until="load"):
        form.locator("button").click()
    total = tab.page.locator("main tbody tr", has_text="a").locator("td").last
    expect(total).to_have_text("10.0", timeout=PATIENCE_MS)
    cluster.send("sold", b'{"shop": "a", "cents": 90}')
    expect(total).to_have_text("100.0", timeout=PATIENCE_MS)
    fine("/topics/sold/totals", tab.look(), tab)
    tab.keep("console-totals")


def test_one_partition_is_looked_at_to_be_moved(tab: Tab) -> None:
    tab.go("/topics/orders")
    tab.page.get_by_role("link", name="move").first.click()
    expect(tab.page.locator("h1")).to_have_text("Move a partition", timeout=PATIENCE_MS)
    assert tab.page.input_value("[name=topic]") == "orders" and tab.page.input_value("[name=replicas]") == "1"
    with tab.page.expect_navigation(wait_until="load"):
        tab.page.locator("[name=replicas]").press("Enter")
    fine("/brokers/moves/new", tab.look(), tab)
    assert "There is nothing to move." in tab.words()
