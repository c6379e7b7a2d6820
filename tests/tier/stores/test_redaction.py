"""What may be told of an error."""

import pytest

from ottla.tier.stores.redaction import redacted, secrets_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("PUT https://host:9000/b/k?sig=abc&x=1 failed", "PUT https://host:9000/b/k?… failed"),
        ("at http://user:word@host/b", "at http://host/b"),
        ("token=abc, then", "token=…, then"),
        ('{"client_secret": "abc"}', '{"client_secret": …}'),
        ("Authorization: SharedKey account:abc=", "Authorization: …"),
        ("AccountKey=abc==;x", "AccountKey=…;x"),
        ("X-Amz-Signature=abc", "X-Amz-Signature=…"),
        ("x-amz-security-token: abc next", "x-amz-security-token: … next"),
        ("SignatureDoesNotMatch: The key is wrong", "SignatureDoesNotMatch: The key is wrong"),
        ("two\nlines  and\tmore", "two lines and more"),
        ("the value is verysecret", "the value is …"),
        ("nothing to hide: 503", "nothing to hide: 503"),
    ],
)
def test_secrets_are_taken_out(text: str, shown: str) -> None:
    assert redacted(text, ["verysecret"]) == shown


def test_secrets_of_the_environment_are_known() -> None:
    environment = {
        "AWS_SECRET_ACCESS_KEY": "longer-than-that",
        "AZURE_STORAGE_ACCOUNT_KEY": "a-key-of-azure",
        "AWS_SESSION_TOKEN": "",
        "AZURE_STORAGE_TOKEN": "tiny",
        "HOME": "/home/of-somebody",
    }
    assert secrets_of(environment) == ("longer-than-that", "a-key-of-azure")
