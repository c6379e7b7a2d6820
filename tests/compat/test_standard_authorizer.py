"""Our access rules and Kafka's own StandardAuthorizer: the same answers to the same questions about the same ACLs.

Names that sort before `*` (such as `$x`) are not asked about: for some of them Kafka's search for prefixes never ends.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.support.java.programs import JavaServer

from ottla.security.access_rules import AccessRules
from ottla.security.acl_entry import AclEntry
from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.security.principal import parse_principal

SEEDS = 20
SETS_PER_SEED = 150
QUESTIONS_PER_SET = 40

WORDS = ["a", "ab", "abc", "abd", "b", "ba", "orders", "orders-eu", "orders-eu-1", "ord", "hard", "hardcode", "ü", "üb"]
PRINCIPALS = ["User:alice", "User:bob", "User:CN=bob,O=x", "Group:alice"]
HOSTS = ["127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1"]
OPERATIONS = [int(operation) for operation in AclOperation if operation >= AclOperation.ALL]
TYPES = [int(AclResourceType.TOPIC), int(AclResourceType.GROUP)]

Question = tuple[str, str, int, int, str]


@pytest.fixture(scope="module")
def standard(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    server = JavaServer("ottla.AuthorizerServer", tmp_path_factory.mktemp("authorizer") / "stderr.log")
    yield server
    server.close()


def any_entry(rng: random.Random) -> AclEntry:
    return AclEntry(
        rng.choice(TYPES),
        rng.choice([*WORDS, "*"]),
        rng.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        rng.choice([*PRINCIPALS, "User:*"]),
        rng.choice(["*", "*", *HOSTS]),
        rng.choice(OPERATIONS),
        rng.choice([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
    )


def any_question(rng: random.Random) -> Question:
    return rng.choice(PRINCIPALS), rng.choice(HOSTS), rng.choice(OPERATIONS), rng.choice(TYPES), rng.choice(WORDS)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_same_answers_as_kafkas_authorizer(seed: int, standard: JavaServer) -> None:
    rng = random.Random(seed)
    allowed = refused = 0
    for _ in range(SETS_PER_SEED):
        entries = list(dict.fromkeys(any_entry(rng) for _ in range(rng.choice([0, 1, 3, 8, 30, 80]))))
        super_users = rng.choice([[], ["User:bob"], ["User:CN=bob,O=x", "Group:alice"]])
        is_open = rng.random() < 0.5
        questions = [any_question(rng) for _ in range(QUESTIONS_PER_SET)]
        theirs = standard.ask(
            {
                "super": ";".join(super_users),
                "open": is_open,
                "acls": [list(entry) for entry in entries],
                "questions": questions,
                "some": [question[:4] for question in questions],
            }
        )
        rules = AccessRules(super_users, allow_everyone_if_no_acl_found=is_open)
        rules.replace_all(entry.as_record(bytes([number]) * 16) for number, entry in enumerate(entries))
        for question, allows, allows_some in zip(questions, theirs["questions"], theirs["some"], strict=True):
            who, host, operation, resource, name = question
            place = parse_principal(who), host, AclOperation(operation), AclResourceType(resource)
            assert rules.allows(*place, name) == allows, (question, entries)
            assert rules.allows_some(*place) == allows_some, (question[:4], entries)
            allowed, refused = allowed + allows, refused + (not allows)
    assert allowed > SETS_PER_SEED and refused > SETS_PER_SEED, "both answers were given often"
