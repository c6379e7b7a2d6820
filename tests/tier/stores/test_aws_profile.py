"""Keys of AWS profiles in files, and that a real S3 server takes them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.processes import versitygw
from tests.support.processes.versitygw import S3Server

from ottla.model.store_location import parse_store_location
from ottla.tier.stores.aws_profile import profile_of
from ottla.tier.stores.buckets import open_cloud
from ottla.tier.stores.errors import StoreDenied

CREDENTIALS = """
[default]
aws_access_key_id = D
aws_secret_access_key = default%secret

[other]
aws_access_key_id = O
aws_secret_access_key = other-secret
aws_session_token = T
"""
CONFIG = """
[default]
region = eu-north-1
[profile other]
region = eu-south-1
[profile role]
role_arn = arn:aws:iam::1:role/x
source_profile = default
[profile inline]
aws_access_key_id = I
aws_secret_access_key = inline-secret
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(CREDENTIALS)
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    return {"HOME": str(tmp_path)}


def test_profiles_are_found_by_name(home: dict[str, str]) -> None:
    for named, environment, keys, region in (
        (None, home, ("D", "default%secret", None), "eu-north-1"),
        ("other", home, ("O", "other-secret", "T"), "eu-south-1"),
        (None, {**home, "AWS_PROFILE": "other"}, ("O", "other-secret", "T"), "eu-south-1"),
        ("default", {**home, "AWS_PROFILE": "other"}, ("D", "default%secret", None), "eu-north-1"),
        ("inline", home, ("I", "inline-secret", None), None),
    ):
        profile = profile_of(named, environment)
        assert profile is not None and profile.region == region
        found = profile()
        assert (found["access_key_id"], found["secret_access_key"], found["token"]) == keys
        assert found["expires_at"] is not None and found["expires_at"] > datetime.now(UTC)


def test_other_credentials_come_first_unless_a_profile_is_named(home: dict[str, str], tmp_path: Path) -> None:
    assert profile_of(None, {**home, "AWS_ACCESS_KEY_ID": "x"}) is None
    assert profile_of(None, {**home, "AWS_WEB_IDENTITY_TOKEN_FILE": "x"}) is None
    assert profile_of("other", {**home, "AWS_ACCESS_KEY_ID": "x"}) is not None
    assert profile_of(None, {"HOME": str(tmp_path / "none")}) is None
    assert profile_of(None, {}) is None


@pytest.mark.parametrize(("name", "hint"), [("none", "name another one"), ("role", "role_arn")])
def test_a_profile_without_keys_is_refused_by_name(home: dict[str, str], name: str, hint: str) -> None:
    profile = profile_of(name, home)
    assert profile is not None
    with pytest.raises(StoreDenied, match=f"{name}.*{hint}"):
        profile()


def test_a_file_of_another_form_is_refused_without_its_content(home: dict[str, str]) -> None:
    Path(home["HOME"], ".aws", "credentials").write_text("my-secret without a section")
    profile = profile_of("other", home)
    assert profile is not None
    with pytest.raises(StoreDenied) as raised:
        profile()
    assert "my-secret" not in str(raised.value)


def test_a_server_takes_them(s3: S3Server, home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in versitygw.ENVIRONMENT:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", home["HOME"])
    keys = f"aws_access_key_id={versitygw.ACCESS_KEY}\naws_secret_access_key={versitygw.SECRET_KEY}\n"
    Path(home["HOME"], ".aws", "credentials").write_text(f"[tests]\n{keys}")

    async def main() -> None:
        store = open_cloud(parse_store_location(s3.url("profile") + "&profile=tests"))
        await store.put("a", b"x")
        assert await store.read("a", 0, 1) == b"x"

    asyncio.run(main())
    with pytest.raises(StoreDenied, match="'other' has no keys"):
        open_cloud(parse_store_location(s3.url("profile") + "&profile=other"))
