"""`ottla.remote.storage`: what is a place for objects, and what is said of everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.store_location import SHAPES, StoreKind, StoreLocationError, parse_store_location


@pytest.mark.parametrize(
    ("url", "kind", "account", "container", "prefix", "options"),
    [
        ("s3://bucket", StoreKind.S3, "", "bucket", "", {}),
        ("s3://bucket/", StoreKind.S3, "", "bucket", "", {}),
        ("S3://my.bucket-1/a/b_c/", StoreKind.S3, "", "my.bucket-1", "a/b_c/", {}),
        (
            "s3://bucket/p?region=eu-central-1&endpoint=https://minio.local:9000&style=path&profile=tier&ca=/etc/ca.pem",
            StoreKind.S3,
            "",
            "bucket",
            "p/",
            {
                "region": "eu-central-1",
                "endpoint": "https://minio.local:9000",
                "style": "path",
                "profile": "tier",
                "ca": "/etc/ca.pem",
            },
        ),
        ("s3://bucket?sse=aws:kms&kms-key=a/b", StoreKind.S3, "", "bucket", "", {"sse": "aws:kms", "kms-key": "a/b"}),
        (
            "s3://bucket?endpoint=http://%5B::1%5D:9000",
            StoreKind.S3,
            "",
            "bucket",
            "",
            {"endpoint": "http://[::1]:9000"},
        ),
        ("gs://bucket/a", StoreKind.GCS, "", "bucket", "a/", {}),
        ("az://account1/container/a/b", StoreKind.AZURE, "account1", "container", "a/b/", {}),
        (
            "az://account1/container?endpoint=http://127.0.0.1:1/account1",
            StoreKind.AZURE,
            "account1",
            "container",
            "",
            {"endpoint": "http://127.0.0.1:1/account1"},
        ),
        ("file:///var/lib/tier", StoreKind.FILE, "", "", "/var/lib/tier", {}),
        ("file://localhost//var//tier/", StoreKind.FILE, "", "", "/var/tier", {}),
        ("file:///mnt/two%20words%3f/ä", StoreKind.FILE, "", "", "/mnt/two words?/ä", {}),
    ],
)
def test_places(url: str, kind: StoreKind, account: str, container: str, prefix: str, options: dict[str, str]) -> None:
    found = parse_store_location(url)
    assert (found.kind, found.account, found.container, found.prefix) == (kind, account, container, prefix)
    assert dict(found.options) == options
    assert "?" not in found.shown or kind is StoreKind.FILE


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (
            "",
            "a URL is expected: s3://bucket/prefix, gs://bucket/prefix, az://account/container/prefix, file:///directory",
        ),
        ("bucket/prefix", "a URL is expected"),
        ("/var/lib", "a URL is expected"),
        ("http://host/bucket", "unknown kind of store 'http'; there are s3://bucket/prefix"),
        ("s3a://bucket", "s3a:// is written s3://bucket/prefix here"),
        ("abfss://container@account", "abfss:// is written az://account/container/prefix here"),
        ("s3://bucket /a", "spaces or control characters"),
        ("s3://bucket/\n", "spaces or control characters"),
        ("s3://", "the bucket or container needs"),
        ("s3:///a", "the bucket or container needs"),
        ("s3://ab", "the bucket or container needs"),
        ("s3://-ab", "the bucket or container needs"),
        ("s3://bucket:9000/a", "the bucket or container needs"),
        ("s3://bucket//a", "the prefix has an empty name"),
        ("s3://bucket/../a", "the prefix has an empty name"),
        ("s3://bucket/ä", "the prefix has an empty name"),
        ("s3://bucket/" + "a" * 200, "the prefix has 201 characters; choose one of up to 200"),
        ("s3://bucket/a%2fb", "no percent-encoding"),
        ("s3://bucket/a#b", "a '#' has no meaning"),
        ("s3://AKIA:secret@bucket/a", "credentials do not belong in this URL"),
        ("s3://bucket?secret_access_key=abc", "'secret_access_key' looks like a credential"),
        ("s3://bucket?AWS_SESSION_TOKEN=abc", "looks like a credential"),
        ("az://account/container?sig=abc", "looks like a credential"),
        ("s3://bucket?endpoint=http://user:abc@host", "endpoint has to be http://host:port"),
        ("s3://bucket?zone=1", "unknown option 'zone'; s3:// knows region, endpoint, ca, profile, style, sse, kms-key"),
        ("gs://bucket?region=1", "unknown option 'region'; gs:// knows ca"),
        ("file:///a?region=1", "unknown option 'region'; file:// knows none"),
        ("s3://bucket?region=a&region=b", "the option region comes twice"),
        ("s3://bucket?region=", "the option region has to be a name"),
        ("s3://bucket?region", "options are written ?name=value"),
        ("s3://bucket?endpoint=host:9000", "endpoint has to be"),
        ("s3://bucket?endpoint=https://host:99999", "endpoint has to be"),
        ("s3://bucket?endpoint=https://[::1", "endpoint has to be"),
        ("s3://bucket?style=flat", "style has to be path or virtual"),
        ("s3://bucket?ca=ca.pem", "ca has to be the absolute path"),
        ("s3://bucket?sse=none", "sse has to be AES256"),
        ("az://account", "account and container are missing"),
        ("az://Account/container", "account and container are missing"),
        ("az://account/c", "the bucket or container needs"),
        ("file://", "three slashes"),
        ("file:///", "name a directory"),
        ("file://host/a", "three slashes"),
        ("file:///a/../b", "the path has '.'"),
        ("file:///a/%2e%2e/b", "the path has '.'"),
        ("file:///a%00b", "control characters"),
        ("file:///a%ff", "not UTF-8"),
    ],
)
def test_what_is_no_place(url: str, told: str) -> None:
    with pytest.raises(StoreLocationError) as raised:
        parse_store_location(url)
    text = str(raised.value)
    assert told in text and "\n" not in text and "abc" not in text


def test_the_shapes_that_are_told_are_places() -> None:
    for kind, shape in SHAPES.items():
        assert parse_store_location(shape).kind is kind
        assert parse_store_location(shape).shown.endswith(shape.partition("://")[2].lstrip("/"))


@given(
    st.one_of(
        st.text(), st.builds("{}://{}?{}".format, st.sampled_from(["s3", "gs", "az", "file"]), st.text(), st.text())
    )
)
def test_any_text_is_a_place_or_refused_in_one_line(text: str) -> None:
    try:
        found = parse_store_location(text)
    except StoreLocationError as error:
        refusal = str(error)
    else:
        refusal = ""
        assert found.kind is StoreKind.FILE or found.container
    assert not refusal or (refusal.isprintable() and len(refusal) < 300)
