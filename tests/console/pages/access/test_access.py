"""The pages of access, on a cluster with users, rules and quotas, as its admin and as somebody without rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import pytest
from tests.console.consoles import Shown, Visitor, marked, running_console
from tests.support.waiting import until

from ottla import Blocking
from ottla.client.security.security import as_security
from ottla.console.options import ConsoleOptions
from ottla.model import limits
from ottla.operations.security.audit_entries import entry_of
from ottla.testing.secure import SecureBroker

HOSTILE = '"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    settings = {"ottla.audit.to": "topic", "ottla.audit.events": "authentication,changes,refused"}
    with SecureBroker(tmp_path_factory.mktemp("secure"), settings) as broker:
        broker.add_user("weak")
        yield broker


@contextmanager
def signed_in(secure: SecureBroker, user: str = "admin") -> Iterator[Visitor]:
    options = ConsoleOptions(secure.bootstrap, port=0, security=as_security(secure.security), signs_in=True)
    with running_console(options) as console:
        visitor = Visitor(console.url)
        password = secure.security_of(user)["sasl.password"]
        shown = visitor.send("/sign-in", "/sign-in", user=user, password=password)
        assert shown.status == 200, shown.words
        yield visitor


@pytest.fixture(scope="module")
def admin(secure: SecureBroker) -> Iterator[Visitor]:
    with signed_in(secure) as visitor:
        yield visitor


@pytest.fixture(scope="module")
def weak(secure: SecureBroker) -> Iterator[Visitor]:
    with signed_in(secure, "weak") as visitor:
        yield visitor


def test_what_is_open(admin: Visitor) -> None:
    shown = admin.get("/access")
    assert shown.status == 200
    assert "What is open" in shown.words
    assert {"low", "medium", "high"} & set(shown.words.split())


def test_a_user_is_added_gets_another_password_and_is_removed(admin: Visitor, secure: SecureBroker) -> None:
    added = admin.send("/access/users", "/access/users/add", user="carla", password="her first", mechanism="all")
    assert "User carla was added" in added.words
    with Blocking(
        secure.bootstrap, security={**secure.security, "sasl.username": "carla", "sasl.password": "her first"}
    ):
        pass
    again = admin.send("/access/users", "/access/users/add", user="carla", password="x", mechanism="all")
    assert (again.status, "there is a user carla already" in again.words) == (400, True)
    assert (marked(again), 'value="carla"' in again.text, 'value="x"' in again.text) == (["user"], True, False)
    page = "/access/users/change?user=carla"
    changed = admin.send(page, "/access/users/password", password="her second", mechanism="all")
    assert "The password of user carla was changed" in changed.words
    kept = admin.send(page, "/access/users/remove", name="carlo")
    assert (kept.status, "nothing was removed" in kept.words) == (400, True)
    assert (marked(kept), 'value="carlo"' in kept.text) == (["name"], True)
    empty = admin.send(page, "/access/users/password", password=" ", mechanism="SCRAM-SHA-512")
    assert (empty.status, marked(empty)) == (400, ["password"])
    assert '<option value="SCRAM-SHA-512" selected>' in empty.text
    gone = admin.send(page, "/access/users/remove", name="carla")
    assert "User carla was removed" in gone.words
    assert admin.get(page).status == 404


@pytest.mark.parametrize("user", ["", "*", "User:x", " ", "ANONYMOUS"])
def test_users_that_nobody_can_be(admin: Visitor, user: str) -> None:
    shown = admin.send("/access/users", "/access/users/add", user=user, password="x", mechanism="all")
    assert (shown.status, "Traceback" in shown.text) == (400, False)


def test_a_rule_is_added_explained_and_removed(admin: Visitor) -> None:
    rule = {"principal": "bert", "permission": "allow", "operation": "read", "resource": "topic", "name": HOSTILE}
    refused = admin.send("/access/rules", "/access/rules/add", **rule)
    assert refused.status == 400
    for wrong in ("Deny", "maybe", ""):
        shown = admin.send("/access/rules", "/access/rules/add", **rule | {"name": "orders", "permission": wrong})
        assert shown.status == 400, "neither is it allowed, then"
        assert marked(shown) == ["permission"]
    added = admin.send("/access/rules", "/access/rules/add", **rule | {"name": "orders"})
    assert "Added: User:bert may read on topic orders, from everywhere" in added.words
    question = "/access/explain?principal=bert&operation={}&resource=topic&name=orders&host=127.0.0.1"
    assert "allowed: User:bert read on topic orders" in admin.get(question.format("read")).words
    assert "refused: User:bert write on topic orders" in admin.get(question.format("write")).words
    listed = admin.get("/access/rules?q=bert")
    address = next(part for part in listed.text.split('"') if part.startswith("/access/rules/remove?"))
    removed = admin.send(address.replace("&amp;", "&"), "/access/rules/remove")
    assert "Removed: User:bert may read" in removed.words
    assert "refused: User:bert read on topic orders" in admin.get(question.format("read")).words


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"principal": "User:a,User:b"}, "principal", "an entry is for one principal"),
        ({"operation": "fly"}, "operation", "'fly' is none of all, read"),
        ({"operation": "cluster-action"}, "operation", "nobody needs cluster-action on a topic"),
        ({"resource": "moon"}, "resource", "the resource is one of topic"),
        ({"name": "no topic"}, "name", "no topic can have the name"),
        ({"name": ""}, "name", "the name of a resource is empty"),
        ({"name": "*"}, "name", 'with "all names that begin with it", * is a character of names'),
        ({"host": "localhost"}, "host", "localhost is no IP address"),
    ],
)
def test_a_rule_that_is_refused_keeps_what_was_typed(
    admin: Visitor, wrong: dict[str, str], field: str, said: str
) -> None:
    typed = {"principal": "bert", "permission": "deny", "operation": "write", "resource": "topic", "name": "kept"}
    typed |= {"host": "10.1.2.3", "prefix": "on", **wrong}
    shown = admin.send("/access/rules", "/access/rules/add", **typed)
    assert (shown.status, said in shown.words, marked(shown)) == (400, True, [field]), shown.words
    assert "--" not in shown.words, "the options of commands mean nothing here"
    for name in ("principal", "name", "host"):
        assert f'name="{name}" value="{typed[name]}"' in shown.text
    assert '<option value="deny" selected>' in shown.text and 'name="prefix" value="on" checked' in shown.text
    if field != "operation":
        assert '<option value="write" selected>' in shown.text


def test_a_wrong_question_keeps_what_was_typed(admin: Visitor) -> None:
    shown = admin.get("/access/explain?principal=bert&operation=write&resource=topic&name=a+b&host=10.1.2.3")
    assert (shown.status, marked(shown)) == (400, ["name"])
    assert 'value="a b"' in shown.text and 'value="10.1.2.3"' in shown.text and 'value="bert"' in shown.text


def test_quotas_are_set_and_removed(admin: Visitor, secure: SecureBroker) -> None:
    wanted = {"user": "bert", "quota": "producer_byte_rate", "value": "2MiB"}
    assert (
        "producer_byte_rate of user bert is 2MiB" in admin.send("/access/quotas", "/access/quotas/set", **wanted).words
    )
    everybody = {"client_id": "*default*", "quota": "request_percentage", "value": "50"}
    assert "of default client-id is 50" in admin.send("/access/quotas", "/access/quotas/set", **everybody).words
    with Blocking(secure.bootstrap, security=secure.security) as client:
        quotas = {str(entity): values for entity, values in client.admin.quotas.describe().items()}
    assert quotas == {"user bert": {"producer_byte_rate": 2 * 1024**2}, "default client-id": {"request_percentage": 50}}
    for wrong in (
        {"value": "-1"},
        {"value": "inf"},
        {"value": "9" * 400},
        {"value": "much"},
        {"value": "much", "quota": "request_percentage"},
        {"user": ""},
        {"ip": "127.0.0.1"},
        {"quota": "nosuch"},
    ):
        shown = admin.send("/access/quotas", "/access/quotas/set", **wanted | wrong)
        assert (shown.status, marked(shown)) == (400, [next(iter(wrong))]), shown.words
        typed = (wanted | wrong)["value"]
        assert f'name="value" value="{typed}"' in shown.text and "--" not in shown.words
    gone = admin.send("/access/quotas?q=bert", "/access/quotas/remove")
    assert "producer_byte_rate of user bert was removed" in gone.words


def test_a_tenant_is_made_used_and_deleted(admin: Visitor, secure: SecureBroker) -> None:
    made = admin.send("/access/tenants", "/access/tenants/add", tenant="acme", storage="50GB")
    assert "Tenant acme was made" in made.words
    assert "of 46.6 GiB" in made.words
    changed = admin.send("/access/tenants/acme", "/access/tenants/acme/limits", partitions="12", storage="1GB")
    assert "of 12" in changed.words
    joined = admin.send("/access/tenants/acme", "/access/tenants/acme/users", user="anna")
    assert "User acme.anna has the rights of tenant acme" in joined.words
    with Blocking(secure.bootstrap, security=secure.security) as client:
        client.admin.topics.create("acme.orders", partitions=1)
    deletion = "/access/tenants/acme/delete"
    assert "It still has" in admin.get(deletion).words
    wrong = admin.send("/access/tenants/acme", "/access/tenants/acme/limits", partitions="few", storage="2GB")
    assert (wrong.status, marked(wrong), 'value="2GB"' in wrong.text) == (400, ["partitions"], True)
    assert admin.send(deletion, deletion, name="acme").status == 400, "its topic is still there"
    mistyped = admin.send(deletion, deletion, name="acne", with_data="on")
    assert (mistyped.status, marked(mistyped), "checked" in mistyped.text) == (400, ["name"], True)
    assert "Tenant acme was deleted" in admin.send(deletion, deletion, name="acme", with_data="on").words
    gone = admin.get("/access/tenants/acme")
    assert (gone.status, "the page Access, Tenants, shows the tenants" in gone.words) == (400, True)
    for wrong, field in (
        ({"tenant": "a b"}, "tenant"),
        ({"tenant": HOSTILE}, "tenant"),
        ({"tenant": "x", "storage": "lots"}, "storage"),
        ({"tenant": "x", "partitions": "-1"}, "partitions"),
        ({"tenant": "x", "connections": "many"}, "connections"),
    ):
        shown = admin.send("/access/tenants", "/access/tenants/add", **wrong)
        assert (shown.status, HOSTILE in shown.text) == (400, False)
        assert marked(shown) == [field] and escape(wrong[field]) in shown.text
        assert "--" not in shown.words, "the options of commands mean nothing here"


def test_tokens_are_said_to_be_off(admin: Visitor) -> None:
    assert "There are no delegation tokens" in admin.get("/access/tokens").words


def row_of(shown: Shown, *words: str) -> str:
    """The row of a table that has all these words."""
    rows = [" ".join(re.sub("<[^>]*>", " ", each).split()) for each in shown.text.split("<tr>")]
    return next(each for each in rows if all(word in each for word in words))


def test_the_audit_log_is_shown(admin: Visitor, weak: Visitor) -> None:
    admin.send("/access/quotas", "/access/quotas/set", user="audited", quota="producer_byte_rate", value="1")
    assert weak.get("/access/quotas").status == 403
    page = "/access/audit?q={}"
    seen = until(lambda: admin.get(page.format("AlterClientQuotas")), lambda shown: "user audited" in shown.words)
    change = row_of(seen, "user audited")
    assert "User:admin 127.0.0.1 CHANGE API AlterClientQuotas allowed named" in change
    seen = until(lambda: admin.get(page.format("User:weak")), lambda shown: "DESCRIBE_CONFIGS" in shown.words)
    refusal = row_of(seen, "DESCRIBE_CONFIGS")
    assert "User:weak 127.0.0.1 DESCRIBE_CONFIGS CLUSTER kafka-cluster refused" in refusal


def test_the_overview_tells_who_changed_what(admin: Visitor, weak: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONSOLE_SAMPLE_S", 0.2)
    monkeypatch.setattr(limits, "CONSOLE_SLOW_EVERY", 1)
    admin.send("/topics/+new", "/topics/%2Bnew", name="seen-in-the-log")
    said = "User:admin create topics : seen-in-the-log"
    shown = until(lambda: admin.part("/overview/flow"), lambda shown: said in shown.words)
    assert 'href="/access/audit"' in shown.text
    assert "seen-in-the-log" not in weak.part("/overview/flow").words


def test_what_is_no_entry_of_the_audit_log_is_said() -> None:
    for value in (b"{", b"[]", b"\xff", b"[" * 200_000):
        found = entry_of(value, 7)
        assert (found.action, found.is_change) == ("not an entry", False)
    strange = entry_of(b'{"action": "CHANGE", "outcome": "allowed", "resource": {"a": 1}, "named": [2]}', 7)
    assert (strange.resource, strange.named, strange.is_change) == ('{"a": 1}', "[2]", True)


@pytest.mark.parametrize("tab", ["users", "rules", "quotas", "tenants", "audit"])
def test_somebody_without_rights_sees_and_changes_nothing(weak: Visitor, admin: Visitor, tab: str) -> None:
    if tab == "audit":  # its topic is created by the first event
        until(lambda: admin.get("/access/audit").words, lambda words: "keeps no audit log" not in words)
    shown = weak.get(f"/access/{tab}")
    assert shown.status == 403, shown.words
    assert "carla" not in shown.words and "Traceback" not in shown.text
    token = weak.get("/access/explain").text  # a page without a form of changes has the token of signing out
    (given,) = {part.partition('"')[0] for part in token.split('name="_token" value="')[1:]}
    forged = weak.post("/access/users/add", {"_token": given, "user": "mallory", "password": "x", "mechanism": "all"})
    assert forged.status == 403
    assert "mallory" not in admin.get("/access/users").words
