"""The users of `format --add-scram`, in the syntax of kafka-storage."""

from __future__ import annotations

from base64 import b64encode

import pytest

from ottla.security.sasl.scram.arguments import parse_scram_user
from ottla.security.sasl.scram.credentials import ScramMechanism, credential_of, salted_password

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
SALT = b"some salt of mine"
SALT_TEXT = b64encode(SALT).decode()


def zeros(count: int) -> bytes:
    return b"\x01" * count


def test_a_password() -> None:
    user = parse_scram_user("SCRAM-SHA-256=[name=alice,password=alice-secret]", zeros)
    assert (user.name, user.mechanism) == ("alice", SHA_256)
    assert user.credential == credential_of("alice-secret", user.credential.salt, 4_096, SHA_256)
    assert len(user.credential.salt) >= 20
    other = parse_scram_user("SCRAM-SHA-256=[name=alice,password=alice-secret]", lambda count: b"\x02" * count)
    assert other.credential.salt != user.credential.salt


def test_salt_iterations_and_quotes() -> None:
    text = f' SCRAM-SHA-512=[name="bob=1",salt="{SALT_TEXT}",iterations=8192,password="a=b"] '
    user = parse_scram_user(text, zeros)
    assert user == ("bob=1", SHA_512, credential_of("a=b", SALT, 8_192, SHA_512))


def test_a_salted_password() -> None:
    salted = b64encode(salted_password("secret", SALT, 4_096, SHA_256)).decode().rstrip("=")
    user = parse_scram_user(f"SCRAM-SHA-256=[name=c,salt={SALT_TEXT},saltedpassword={salted}]", zeros)
    assert user.credential == credential_of("secret", SALT, 4_096, SHA_256)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign in SCRAM argument"),
        ("SCRAM-SHA-1=[name=a,password=hidden]", "The add-scram mechanism SCRAM-SHA-1 is not supported."),
        ("aGlkZGVuIQ==", "The add-scram mechanism is not supported."),
        ("SCRAM-SHA-256=name=a,password=hidden]", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a,password=hidden", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[]", "No equals sign found in a SCRAM component"),
        ("SCRAM-SHA-256=[name=a,hidden]", "No equals sign found in a SCRAM component"),
        ("SCRAM-SHA-256=[password=hidden]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=,password=hidden]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=hidden]", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        ("SCRAM-SHA-256=[name=a,password=hidden,salt=!]", "Failed to decode given salt"),
        ("SCRAM-SHA-256=[name=a,salt=AAAA,saltedpassword=hid*den]", "Failed to decode given saltedPassword"),
        ("SCRAM-SHA-256=[name=a,password=hidden,iterations=x]", "Failed to parse iterations count: x"),
        (
            "SCRAM-SHA-256=[name=a,password=hidden,iterations=4095]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM-SHA-256",
        ),
        (
            "SCRAM-SHA-512=[name=a,password=hidden,iterations=16385]",
            "The 'iterations' value must be <= 16384 for add-scram using SCRAM-SHA-512",
        ),
        ("SCRAM-SHA-256=[name=a,password=hidden,who=b,what=c]", "Unknown SCRAM configurations: what, who"),
    ],
)
def test_mistakes_are_told_without_the_password(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared
        parse_scram_user(text, zeros)
    assert str(refused.value) == problem
