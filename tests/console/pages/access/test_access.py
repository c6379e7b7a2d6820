"""The pages of access, on a cluster with users, rules and quotas, as its admin and as somebody without rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.console.consoles import Visitor, running_console
from tests.support.waiting import until

from ottla import Blocking
from ottla.client.security.security import as_security
from ottla.console.options import ConsoleOptions
from ottla.console.pages.access.audit import _row
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
    page = "/access/users/change?user=carla"
    changed = admin.send(page, "/access/users/password", password="her second", mechanism="all")
    assert "The password of user carla was changed" in changed.words
    kept = admin.send(page, "/access/users/remove", name="carlo")
    assert (kept.status, "nothing was removed" in kept.words) == (400, True)
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
        {"user": ""},
        {"ip": "127.0.0.1"},
        {"quota": "nosuch"},
    ):
        assert admin.send("/access/quotas", "/access/quotas/set", **wanted | wrong).status == 400
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
    assert admin.send(deletion, deletion, name="acme").status == 400, "its topic is still there"
    assert "Tenant acme was deleted" in admin.send(deletion, deletion, name="acme", with_data="on").words
    assert admin.get("/access/tenants/acme").status == 400
    for wrong in ({"tenant": "a b"}, {"tenant": HOSTILE}, {"tenant": "x", "storage": "lots"}):
        shown = admin.send("/access/tenants", "/access/tenants/add", **wrong)
        assert (shown.status, HOSTILE in shown.text) == (400, False)


def test_tokens_are_said_to_be_off(admin: Visitor) -> None:
    assert "There are no delegation tokens" in admin.get("/access/tokens").words


def test_the_audit_log_is_shown(admin: Visitor) -> None:
    admin.send("/access/quotas", "/access/quotas/set", user="audited", quota="producer_byte_rate", value="1")
    shown = until(lambda: admin.get("/access/audit?q=AlterClientQuotas").words, lambda words: "User:admin" in words)
    assert "allowed" in shown


def test_what_is_no_entry_of_the_audit_log_is_said() -> None:
    for value in (b"{", b"[]", b"\xff", b"[" * 200_000):
        assert _row(value, 7).operation == "not an entry"


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
