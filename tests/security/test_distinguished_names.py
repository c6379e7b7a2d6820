"""Distinguished names as text; the expected texts are Java's (see test_same_as_kafka.py)."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.security.names import (
    COMMON_NAME,
    COUNTRY,
    DOMAIN,
    EMAIL,
    ORGANIZATION,
    TITLE,
    USER_ID,
    attribute,
    certificate,
    der,
    name,
)

from ottla.model import limits
from ottla.security.der import InvalidDer, object_identifier, read_values
from ottla.security.distinguished_names import distinguished_name, subject_of


def text_of(encoded: bytes) -> str:
    [value] = read_values(encoded)
    return distinguished_name(value)


def test_the_subject_of_a_certificate() -> None:
    kinds = [NameOID.COUNTRY_NAME, NameOID.STATE_OR_PROVINCE_NAME, NameOID.LOCALITY_NAME, NameOID.STREET_ADDRESS]
    kinds += [NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.COMMON_NAME]
    parts = [x509.NameAttribute(kind, value) for kind, value in zip(kinds, ["DE", *"abcdef"], strict=True)]
    assert subject_of(certificate(x509.Name(parts))) == "CN=f,OU=e,O=d,STREET=c,L=b,ST=a,C=DE"
    assert subject_of(certificate(x509.Name([]))) == ""


def test_attributes_that_rfc_2253_does_not_name_are_printed_in_der() -> None:
    encoded = name(
        [attribute(EMAIL, 0x16, b"a@b")], [attribute(TITLE, 0x0C, b"Dr")], [attribute(COMMON_NAME, 0x0C, b"x")]
    )
    assert text_of(encoded) == "CN=x,2.5.4.12=#0c024472,1.2.840.113549.1.9.1=#1603614062"


def test_a_value_that_is_no_string_is_printed_in_der() -> None:
    assert text_of(name([attribute(COMMON_NAME, 0x02, b"\1")])) == "CN=#020101"
    assert text_of(name([attribute(COMMON_NAME, 0x1C, b"\0\0\0a")])) == "CN=#1c0400000061"


@pytest.mark.parametrize(
    ("tag", "content"), [(0x0C, b"a\xff"), (0x0C, b"\xed\xa0\x80"), (0x1E, b"\xd8\0"), (0x1E, b"a")]
)
def test_a_string_that_is_not_unicode_is_printed_in_der(tag: int, content: bytes) -> None:
    """If it were printed with replacements, different names would become one."""
    assert text_of(name([attribute(COMMON_NAME, tag, content)])) == f"CN=#{tag:02x}{len(content):02x}{content.hex()}"


def test_parts_with_several_attributes_keep_their_order() -> None:
    both = [attribute(USER_ID, 0x0C, b"u"), attribute(COMMON_NAME, 0x0C, b"n")]
    assert text_of(name([attribute(DOMAIN, 0x16, b"com")], both)) == "UID=u+CN=n,DC=com"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Duke, O=Java", r"CN=Duke\, O\=Java"),
        (r'a+b"c\d<e>f;g#h', r"CN=a\+b\"c\\d\<e\>f\;g\#h"),
        ("  x  ", r"CN=\ \ x\ \ "),
        (" ", r"CN=\ "),
        ("", "CN="),
        ("a\0b", r"CN=a\00b"),
        ("josé ∞ 😀", "CN=josé ∞ 😀"),
    ],
)
def test_characters_are_escaped(value: str, text: str) -> None:
    assert text_of(name([attribute(COMMON_NAME, 0x0C, value.encode())])) == text


@pytest.mark.parametrize(("tag", "encoding"), [(0x1E, "utf-16-be"), (0x13, "latin-1"), (0x14, "latin-1")])
def test_other_encodings(tag: int, encoding: str) -> None:
    assert text_of(name([attribute(ORGANIZATION, tag, "é".encode(encoding))])) == "O=é"


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x30",
        b"\x30\x80",
        b"\x30\x85\1\1\1\1\1",
        b"\x30\x82\xff",
        b"\x30\x05\x30",
        b"\x31\x00",
        der(0x30, b""),
        der(0x30, der(0x30, b"")),
        der(0x30, der(0x30, der(0x02, b"\1") * 4)),
        der(0x30, der(0x30, der(0x02, b"\1") * 5)),
        der(0x30, der(0x30, der(0x02, b"\1") * 4 + der(0x30, b"\x30\x00"))),
        der(0x30, der(0x30, der(0x02, b"\1") * 4 + name([b"\x30\x00"]))),
        der(0x30, der(0x30, der(0x02, b"\1") * 4 + name([der(0x30, der(0x06, b""))]))),
        der(0x30, der(0x30, der(0x02, b"\1") * 4 + name([attribute(b"\xff", 0x0C, b"x")]))),
        der(0x30, der(0x30, der(0x02, b"\1") * 4 + name([attribute(b"", 0x0C, b"x")]))),
        der(
            0x30,
            der(
                0x30,
                der(0x02, b"\1") * 4 + name([attribute(COUNTRY, 0x0C, b"x" * limits.PRINCIPAL_NAME_CHARACTERS_MAX)]),
            ),
        ),
    ],
)
def test_bytes_that_are_no_certificate(broken: bytes) -> None:
    with pytest.raises(InvalidDer):
        subject_of(broken)


@pytest.mark.parametrize(
    ("content", "dotted"), [("550403", "2.5.4.3"), ("2a864886f70d", "1.2.840.113549"), ("8837", "2.999"), ("00", "0.0")]
)
def test_object_identifiers(content: str, dotted: str) -> None:
    assert object_identifier(bytes.fromhex(content)) == dotted
