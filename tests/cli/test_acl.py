"""`ottla acl` against a node with an authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, invoke
from tests.support.requests.acls import GUARDED

from ottla.testing.broker import EmbeddedBroker


@pytest.fixture
def acl(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Run `ottla acl ...` against a node in which every client is a super user."""
    with EmbeddedBroker(tmp_path, GUARDED) as broker:

        def run(*words: str, code: int = 0) -> Run:
            done = invoke("acl", *words, env={"OTTLA_BOOTSTRAP": broker.bootstrap})
            assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
            return done

        yield run


def brief(rows: list[dict[str, Any]]) -> set[str]:
    return {
        " ".join(str(row[name]) for name in ("principal", "permission", "operation", "resource", "name", "pattern"))
        for row in rows
    }


def test_add_list_and_remove(acl: Callable[..., Run]) -> None:
    added = acl("add", "alice", "--topic", "orders", "-o", "read", "-o", "DESCRIBE_CONFIGS", "--host", "10.0.0.1")
    assert "User:alice may read on topic orders, from 10.0.0.1" in added.err
    denied = acl("add", "User:*", "--topic", "pay", "--prefix", "--deny", "-o", "all")
    assert "User:* may do nothing on topics that begin with pay, from everywhere" in denied.err
    acl("add", "bob", "--cluster", "-o", "create")
    listed = acl("list", "--json").json
    assert brief(listed) == {
        "User:alice allow read topic orders literal",
        "User:alice allow describe-configs topic orders literal",
        "User:* deny all topic pay prefixed",
        "User:bob allow create cluster kafka-cluster literal",
    }
    assert brief(acl("list", "--topic", "payments", "--json").json) == {"User:* deny all topic pay prefixed"}
    assert brief(acl("list", "--principal", "bob", "--json").json) == {
        "User:bob allow create cluster kafka-cluster literal"
    }
    assert "User:alice" in acl("list").out
    refused = acl("remove", "--principal", "alice", "-o", "read", code=1)
    assert "User:alice may read" in refused.err and "Remove 1 entry?" in refused.err
    removed = acl("remove", "--principal", "alice", "-o", "read", "--yes", "--json").json
    assert brief(removed) == {"User:alice allow read topic orders literal"}
    assert "no entry matches" in acl("remove", "--principal", "nobody", code=1).err
    assert "removed 3 entries" in acl("remove", "--all", "--yes").err
    nothing = acl("remove", "--principal", "nobody", "--yes", "--json", code=1)
    assert nothing.json == [] and "warning: no entry matches" in nothing.err
    assert acl("list", "--json").json == []


def test_what_producers_and_consumers_need(acl: Callable[..., Run]) -> None:
    acl("add", "p", "--producer", "--topic", "t", "--transactional-id", "x")
    acl("add", "c", "--consumer", "--topic", "t", "--group", "g")
    assert brief(acl("list", "--json").json) == {
        "User:p allow write topic t literal",
        "User:p allow describe topic t literal",
        "User:p allow create topic t literal",
        "User:p allow write transactional-id x literal",
        "User:p allow describe transactional-id x literal",
        "User:c allow read topic t literal",
        "User:c allow describe topic t literal",
        "User:c allow read group g literal",
    }


def test_explain(acl: Callable[..., Run]) -> None:
    acl("add", "alice", "--topic", "or", "--prefix", "-o", "read")
    acl("add", "alice", "--topic", "orders", "-o", "write", "--deny")
    allowed = acl("explain", "alice", "describe", "--topic", "orders").out
    assert allowed.startswith("allowed: User:alice describe on topic orders from 127.0.0.1: allowed by an entry")
    assert "may read on topics that begin with or" in allowed
    (denied,) = acl("explain", "alice", "write", "--topic", "orders", "--json", code=3).json
    assert denied["allowed"] is False and denied["entry"]["permission"] == "deny"
    assert "no entry for this principal" in acl("explain", "bob", "read", "--topic", "orders", code=3).out
    unseen = acl("explain", "bob", "read", "--topic", "x", code=3)
    assert "refused" in unseen.out
    assert "super.users cannot be seen, and may allow more: --super-user gives it" in unseen.err
    assert not acl("explain", "alice", "describe", "--topic", "orders").err, "it is allowed in any case"
    assert "allowed" in acl("explain", "bob", "read", "--topic", "x", "--open").out
    assert "super user" in acl("explain", "bob", "read", "--topic", "x", "--super-user", "bob").out
    partly = acl("explain", "alice", "read", "--topic", "orders", "--topic", "x", "--json", code=3).json
    assert [each["allowed"] for each in partly] == [True, False], "what is refused once is refused"


def test_a_cluster_without_an_authorizer_says_so(ottla: Callable[..., Run]) -> None:
    assert "No Authorizer is configured" in ottla("acl", "list", code=1).err
    error, hint = ottla("acl", "add", "a", "--topic", "t", "-o", "read", code=1).err.splitlines()
    assert (
        error == "error: User:a may read on topic t, from everywhere: SECURITY_DISABLED: No Authorizer is configured."
    )
    assert "authorizer.class.name" in hint
    refused = ottla("tenant", "create", "acme", code=1).err
    assert "every client reaches the topics of every tenant" in refused and "--no-user" in refused
    assert "warning: the brokers have no authorizer" in ottla("tenant", "create", "acme", "--no-user").err


def test_explain_says_that_it_may_not_see_the_super_users(tmp_path: Path) -> None:
    """A client with the right to describe ACLs, and none to describe the brokers' settings."""
    with EmbeddedBroker(tmp_path, GUARDED | {"super.users": "User:ANONYMOUS"}) as broker:
        env = {"OTTLA_BOOTSTRAP": broker.bootstrap}
        invoke("acl", "add", "User:ANONYMOUS", "--cluster", "-o", "describe", env=env)
        broker.stop()
    with EmbeddedBroker(tmp_path, GUARDED | {"super.users": "User:root"}) as broker:
        run = invoke("acl", "explain", "root", "write", "--topic", "x", "-b", broker.bootstrap)
        assert run.code == 3 and run.out.startswith("refused: User:root")
        assert "super.users cannot be seen" in run.err and "allow.everyone.if.no.acl.found cannot be seen" in run.err
