"""Distinguished names of certificates as text, as Java's `X500Principal.getName()` prints them (RFC 2253).

ACLs and `super.users` contain these texts, so they must be the same as Kafka's to the character. In particular, Java
prints attributes that RFC 2253 does not name (emailAddress, serialNumber, title, ...) as `OID=#` and the value in DER.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ottla.model import limits
from ottla.security.der import (
    CONTEXT_0,
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    DerValue,
    InvalidDer,
    object_identifier,
    read_values,
)

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# The types of strings by tag, with the encodings of newer JDKs; values of other types are printed in DER. Java 17 reads
# all of them as UTF-8, which makes other names of BMPStrings, and of characters beyond ASCII in the types without them.
_STRINGS = {
    0x0C: "utf-8",  # UTF8String
    0x13: "latin-1",  # PrintableString
    0x14: "latin-1",  # T61String
    0x16: "latin-1",  # IA5String
    0x1B: "latin-1",  # GeneralString
    0x1E: "utf-16-be",  # BMPString
}
_ESCAPED = ',=+<>#;"\\'
_BLANKS = " \r"
# The fields of a certificate before its subject, without the version: serial number, algorithm, issuer, validity.
_FIELDS_BEFORE_SUBJECT = 4


def subject_of(certificate: bytes) -> str:
    """Return the subject of a certificate in DER; raise InvalidDer."""
    signed = _first(read_values(certificate)).expect(SEQUENCE)
    fields = _first(signed.values()).expect(SEQUENCE).values()
    field = next(fields, None)
    skipped = _FIELDS_BEFORE_SUBJECT if field is not None and field.tag == CONTEXT_0 else _FIELDS_BEFORE_SUBJECT - 1
    return distinguished_name(_first(islice(fields, skipped, None)).expect(SEQUENCE))


def distinguished_name(name: DerValue) -> str:
    """Return the text of a name: its parts, the last one first."""
    if len(name.content) > limits.PRINCIPAL_NAME_CHARACTERS_MAX:
        raise InvalidDer(f"the name has {len(name.content)} bytes")
    parts = ["+".join(_attribute(each) for each in part.expect(SET).values()) for part in name.values()]
    return ",".join(reversed(parts))


def _attribute(attribute: DerValue) -> str:
    kind, value = (*attribute.expect(SEQUENCE).values(), None, None)[:2]
    if kind is None or value is None:
        raise InvalidDer("an attribute of the name has no value")
    identifier = object_identifier(kind.expect(OBJECT_IDENTIFIER).content)
    keyword = _KEYWORDS.get(identifier)
    text = None if keyword is None else _text(value)
    return f"{keyword or identifier}=" + (f"#{value.encoded.hex()}" if text is None else _escaped(text))


def _text(value: DerValue) -> str | None:
    """Return the text of a string. Java replaces what cannot be decoded, by which different names become one; here
    such a string is printed in DER.
    """
    try:
        return value.content.decode(_STRINGS[value.tag])
    except (KeyError, UnicodeDecodeError):
        return None


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else "\\00" if char == "\0" else char for char in text)
    lead = len(escaped) - len(escaped.lstrip(_BLANKS))
    middle = escaped.strip(_BLANKS)
    return (
        "".join(f"\\{char}" for char in escaped[:lead])
        + middle
        + "".join(f"\\{char}" for char in escaped[lead + len(middle) :])
    )


def _first(values: Iterator[DerValue]) -> DerValue:
    found = next(values, None)
    if found is None:
        raise InvalidDer("the certificate is not complete")
    return found
