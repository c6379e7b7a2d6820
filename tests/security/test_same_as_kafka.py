"""JAAS configurations, distinguished names and rules for names: Ottla reads them as Java and Kafka do."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Callable, Iterator

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from tests.security.names import (
    COMMON_NAME,
    COUNTRY,
    DOMAIN,
    EMAIL,
    ORGANIZATION,
    STRINGS,
    TITLE,
    USER_ID,
    attribute,
    certificate,
    name,
)
from tests.support.java.programs import JavaServer

from ottla.security.der import read_values
from ottla.security.distinguished_names import distinguished_name, subject_of
from ottla.security.java_regex.syntax import InvalidRule
from ottla.security.kerberos_names import KerberosRules, parse_kerberos_name
from ottla.security.name_rules import NoMatchingRule
from ottla.security.sasl.jaas import LoginModule, parse_jaas_line
from ottla.security.ssl_principal import SslPrincipalRules

pytestmark = pytest.mark.compat
CASES = 400


@pytest.fixture(scope="module")
def kafka(java_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaServer]:
    server = JavaServer("ottla.IdentityServer", tmp_path_factory.mktemp("java") / "stderr.log")
    try:
        yield server
    finally:
        server.close()


def ours(read: Callable[[str], object], texts: list[str]) -> list[object]:
    """What we read, None where we refuse."""
    results: list[object] = []
    for text in texts:
        try:
            results.append(read(text))
        except (ValueError, NoMatchingRule):
            results.append(None)
    return results


def same(theirs: list[object], our: list[object], texts: list[str]) -> None:
    different = [(text, java, own) for text, java, own in zip(texts, theirs, our, strict=True) if java != own]
    assert not different[:5], f"{len(different)} of {len(texts)} (text, Kafka's, ours)"
    assert any(result is not None for result in our)


def plain(module: LoginModule) -> dict[str, object]:
    return {
        "name": module.name,
        "flag": f"LoginModuleControlFlag: {module.flag}",
        "options": dict(module.options),
    }


PIECES = [
    *(
        "user",
        "password=",
        "=",
        ";",
        " ",
        " ",
        "\n",
        '"',
        "'",
        "\\",
        "/",
        "//",
        "/*",
        "*/",
        "a.B",
        "required",
        "1",
        "-",
        ".",
    ),
    *(
        'a="b"',
        "c=d",
        'e="f g"',
        "é",
        "😀",
        "\x80",
        "\t",
        "*",
        "$",
        "_",
        "@",
        "\\n",
        "\\101",
        "\\\\",
        "x=1",
        "y=-z",
        "{",
        "}",
    ),
]


def test_jaas_lines(kafka: JavaServer) -> None:
    rng = random.Random(1)
    texts = [
        "a.Module required "
        + "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 6)))
        + rng.choice([";", ";", ""])
        for _ in range(CASES * 5)
    ]
    texts += [f"{left} optional a=b{right}" for left in ("m", '"m"', "'m'", "1") for right in (";", "; ", ";;", ";x")]
    theirs = kafka.ask({"verb": "jaas", "texts": texts})
    # An option without a name (a number, a character) is possible with Kafka. It has no use, and Ottla refuses it.
    nameless = [isinstance(one, list) and any("null" in module["options"] for module in one) for one in theirs]
    kept = [index for index, without in enumerate(nameless) if not without]
    texts, theirs = [texts[index] for index in kept], [theirs[index] for index in kept]
    same(theirs, ours(lambda text: [plain(parse_jaas_line(text))], texts), texts)


def test_subjects_of_certificates(kafka: JavaServer) -> None:
    kinds = [NameOID.COMMON_NAME, NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER, NameOID.TITLE, NameOID.USER_ID]
    kinds += [NameOID.DOMAIN_COMPONENT, NameOID.STREET_ADDRESS, NameOID.GIVEN_NAME, NameOID.LOCALITY_NAME]
    names = [x509.Name([]), *(x509.Name([x509.NameAttribute(kind, "a, b=c ")]) for kind in kinds)]
    names.append(x509.Name([x509.NameAttribute(kind, "x") for kind in kinds]))
    texts = [b64encode(certificate(each)).decode() for each in names]
    same(
        kafka.ask({"verb": "subject", "texts": texts}),
        [subject_of(certificate(each)) for each in names],
        texts,
    )


def test_names_of_all_kinds(kafka: JavaServer) -> None:
    rng = random.Random(3)
    kinds = [COMMON_NAME, COUNTRY, ORGANIZATION, TITLE, EMAIL, USER_ID, DOMAIN]

    def made_up() -> bytes:
        tag = rng.choice([*STRINGS])
        letters = ',=+<>#;"\\ \r\n\0abé∞' if "utf" in STRINGS[tag] else ',=+<>#;"\\ \r\n\0ab'
        value = "".join(rng.choice(letters) for _ in range(rng.randint(0, 6)))
        return attribute(rng.choice(kinds), tag, value.encode(STRINGS[tag]))

    names = [
        name(*([made_up() for _ in range(rng.choice([1, 1, 2]))] for _ in range(rng.randint(0, 4))))
        for _ in range(CASES)
    ]
    names.append(name([attribute(COMMON_NAME, 0x12, b"123")]))  # NumericString
    names.append(name([attribute(COMMON_NAME, 0x02, b"\1")]))  # INTEGER
    texts = [b64encode(each).decode() for each in names]
    our = [distinguished_name(next(read_values(each))) for each in names]
    same(kafka.ask({"verb": "name", "texts": texts}), list(our), texts)


SSL_RULES = [
    *("DEFAULT", "", "DEFAULT,DEFAULT", " DEFAULT ", "DEFAULTS", "RULE:a", "RULE:a/b", "RULE:a/b/L/U", "RULE:a/b/L x"),
    *("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "RULE:.*/Bob/", "RULE:^.*$/Bob/", "RULE:^CN=(.*?),.*$/$1$7/"),
    *("RULE:^CN=(.*?),.*$/$12/U", "RULE:^CN=(.*?),.*$/$1\\/\\$1/", "RULE:^CN=(?<who>.*?),.*$/${who}/L"),
    *(
        "RULE:^CN=(.*?),OU=(x)?.*$/$1-$2/",
        "RULE:^CN=(.*?),.*$/$0/L",
        "RULE:a,RULE:.*/c/",
        ",, RULE:^$/nobody/ ,DEFAULT",
    ),
    *("RULE:^CN=(.*?),OU=(.*?),O=(.*?),.*$/$1@$2@$3/L, RULE:^O=(.*)$/$1/, DEFAULT", "RULE:\\w+/x/", "RULE://x/"),
    *("RULE:(?i)^cn=([a-z]+).*$/$1/U", "RULE:^CN=([^,]+)(?:,.*)?$/$1/", "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/"),
    *(
        "RULE:^(?:CN|O)=(?<name>\\w+)(,.*)?$/${name}/",
        "RULE:(CN=.*?,)?(OU=.*?,)?(.*)/$3/",
        "RULE:\\QCN=\\E.{1,4},.+/x/",
    ),
]


def test_ssl_principal_mapping_rules(kafka: JavaServer) -> None:
    texts = ["CN=duke,OU=ServiceUsers,O=Org,C=US", "O=Org", "", "CN=a/b,OU=x", "CN=É,O=Ü", "é", "a", "RULE"]
    for rules in SSL_RULES:
        our = ours(lambda text, rules=rules: SslPrincipalRules(rules).name_of(text), texts)  # type: ignore[misc]
        assert kafka.ask({"verb": "ssl", "rules": rules, "texts": texts}) == our, rules


ATOMS = ["a", "b", ".", "[ab]", "[^a]", r"\w", r"\W", "^", "$", r"\b", "-", "(?i)A", r"\Q.\E", "()", r"\s", "CN="]
QUANTIFIERS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"]


def made_up_pattern(rng: random.Random, depth: int) -> str:
    parts: list[str] = []
    for _ in range(rng.randint(1, 3)):
        part = rng.choice(ATOMS)
        if depth and rng.random() < 0.5:
            inner = "|".join(made_up_pattern(rng, depth - 1) for _ in range(rng.choice((1, 1, 2))))
            part = rng.choice(("({})", "({})", "(?:{})")).format(inner)
        has_width = part not in ("^", "$", r"\b", "(?i)A") and not part.startswith(r"\Q")
        parts.append(part + (rng.choice(QUANTIFIERS) if has_width else ""))
    return "".join(parts)


def test_patterns_of_any_kind(kafka: JavaServer) -> None:
    """Which names match, what their groups are, and what follows from several matches in one name."""
    rng = random.Random(4)
    texts = ["", "a", "b", "ab", "ba", "aab", "abab", "a-b", "A.b", "aaaa", "bbab", "CN=ab", "a b", "a\n", "a\r\n"]
    different, matched = [], 0
    for _ in range(CASES * 10):
        rules = f"RULE:{made_up_pattern(rng, 2)}/$0;$1;$2/"
        try:
            parsed = SslPrincipalRules(rules)
        except InvalidRule:  # also a group that does not exist: Kafka finds it out with the first client
            continue
        our = ours(parsed.name_of, texts)
        theirs = kafka.ask({"verb": "ssl", "rules": rules, "texts": texts})
        answers = zip(texts, theirs, our, strict=True)
        different += [(rules, text, java, own) for text, java, own in answers if java != own]
        matched += sum(name is not None for name in our)
    assert not different[:5], f"{len(different)} (rules, name, Kafka's, ours)"
    assert matched > CASES


KERBEROS_RULES = [
    *(["DEFAULT"], ["default"], ["DEFAULT/L"], ["RULE:[1:$1]"], ["RULE:[2:$1]", "DEFAULT"], ["RULE:[2:$2-$1]/U"]),
    *(["RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//", "DEFAULT"], ["RULE:[1:$1@$0]"], ["RULE:[1:$1]s/a/x/g", "RULE:[2:$0]/L"]),
    *(
        ["RULE:[1:$1]s/(a)(n)/$2$1/gU"],
        ["RULE:[1:$1]s/(a)(n)/$2$1/g/U"],
        ["RULE:[1:]"],
        ["RULE:[0:$0]"],
        ["RULE:[:$1]"],
    ),
    *(["RULE:[1:$1]x"], ["RULE:[1:a$1b$0c](x*)"], ["RULE:[1:$1](.*)L"], ["RULE:[2:$1](k.*)s/k//"]),
]


def test_kerberos_rules(kafka: JavaServer) -> None:
    texts = [
        "alice@REALM.COM",
        "Banana@OTHER.COM",
        "kafka/host@REALM.COM",
        "kafka/Host@OTHER.COM",
        "alice",
        "a/b",
        "",
        "@",
    ]
    texts += ["a/b/c@R", "a@b@c", "/@", "/h@REALM.COM"]
    for rules in KERBEROS_RULES:

        def read(text: str, rules: list[str] = rules) -> str:
            return KerberosRules(rules, "REALM.COM").short_name(parse_kerberos_name(text))

        asked = {"verb": "kerberos", "realm": "REALM.COM", "rules": rules, "texts": texts}
        assert kafka.ask(asked) == ours(read, texts), rules
