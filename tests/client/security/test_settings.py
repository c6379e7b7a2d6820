"""Security settings: Kafka's names and librdkafka's, mistakes in one line, secrets that nothing shows."""

import pickle
from pathlib import Path

import pytest

from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.security.names import JAVA_CLASSES, KNOWN, SECRETS, WITHOUT_EFFECT, hidden
from ottla.client.security.secret import Secret, SecretMissing
from ottla.client.security.security import Security, SecurityProtocol, as_security
from ottla.client.security.tokens import TokenEndpoint, TokenFile, TokenFunction, UnsecuredToken
from ottla.model.broker_settings import BROKER_SETTINGS
from ottla.model.setting import SettingKind

PASSWORD = "correct horse battery"
SCRAM_LINE = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    f'username="alice" password="{PASSWORD}" tokenauth="true";'
)
SCRAM = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM_LINE}
OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OAUTH_LINE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "


def test_java_and_librdkafka_spell_the_same() -> None:
    java = Security.of(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="alice" password="{PASSWORD}";',
        }
    )
    librdkafka = Security.of(
        {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
        }
    )
    assert java == librdkafka
    assert java.sasl is not None and java.sasl.username == "alice" and java.sasl.password == Secret(PASSWORD)


def test_a_delegation_token_is_marked() -> None:
    security = Security.of(SCRAM)
    assert security.sasl is not None and security.sasl.is_token


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"security.protocol": "TLS"}, "security.protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not TLS"),
        ({"sasl.mechanismus": "PLAIN"}, "sasl.mechanismus: there is no such security setting; is it sasl.mechanisms"),
        ({"sasl.username": "alice"}, "the settings have credentials but no security.protocol"),
        ({"ssl.ca.location": "ca.pem"}, "the settings have certificates but no security.protocol"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is one of PLAIN, SCRAM-SHA-256, .* it is not set"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAP"}, "sasl.mechanism is one of .*, not GSSAP"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, "sasl.kerberos.service.name is not set"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "PLAIN needs a user and a password"),
        (OAUTH, "OAUTHBEARER needs a source of tokens"),
        (SCRAM | {"sasl.mechanisms": "PLAIN"}, "sasl.mechanism is SCRAM-SHA-[0-9]+, and sasl.mechanisms is PLAIN"),
        (OAUTH | {"sasl.oauthbearer.token.endpoint.url": "https://id/token"}, "a token endpoint needs .*client.id"),
        (OAUTH | {"sasl.oauthbearer.token.endpoint.url": "ftp://id"}, "is an http, https or file URL"),
        ({"security.protocol": "SSL", "ssl.keystore.key": "x"}, "ssl.keystore.key is a key without a certificate"),
        ({"security.protocol": "SSL", "ssl.keystore.certificate.chain": "x"}, "is a certificate without a key"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "BKS"}, "ssl.truststore.type is one of PEM, PKCS12, JKS"),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1,TLSv1.2"}, "ssl.enabled.protocols are some of"),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"},
            "ssl.endpoint.identification.algorithm is https or empty, not ldap",
        ),
        (SCRAM | {"sasl.login.callback.handler.class": "com.example.Own"}, "names Java code .com.example.Own."),
        (SCRAM | {"sasl.jaas.config": "env:NOT_SET_HERE"}, "sasl.jaas.config: the environment variable NOT_SET_HERE"),
        (SCRAM | {"sasl.jaas.config": f"Scram required password={PASSWORD}"}, "sasl.jaas.config: "),
    ],
)
def test_a_mistake_is_told_in_one_line(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        Security.of(settings)
    assert "\n" not in str(raised.value) and PASSWORD not in str(raised.value)


def test_a_token_provider_fits_its_mechanism() -> None:
    with pytest.raises(ValueError, match="token_provider is for OAUTHBEARER"):
        Security.of(SCRAM, token_provider=lambda: "token")
    with pytest.raises(TypeError, match="token_provider is called for a token, but it is a str"):
        Security.of(OAUTH, token_provider="token")  # type: ignore[arg-type]


def test_a_place_may_be_a_path(tmp_path: Path) -> None:
    text = {"security.protocol": "SSL", "ssl.truststore.location": str(tmp_path / "ca.pem")}
    assert Security.of(text | {"ssl.truststore.location": tmp_path / "ca.pem"}) == Security.of(text)


def test_settings_of_java_without_a_meaning_here_are_accepted() -> None:
    more = {
        "ssl.protocol": "TLSv1.3",
        "ssl.trustmanager.algorithm": "PKIX",
        "sasl.login.callback.handler.class": "org.apache.kafka.common.security.scram.Handler",
    }
    assert Security.of(SCRAM | more) == Security.of(SCRAM)


def test_no_text_shows_a_secret() -> None:
    security = Security.of(SCRAM | {"ssl.truststore.location": "ca.p12", "ssl.truststore.password": PASSWORD})
    options = ClientOptions(parse_bootstrap("a:1"), security=security)
    shown = [repr(security), str(security), f"{security}", repr(options), str(pickle.dumps(security))]
    shown.append(str(hidden(SCRAM | {"sasl.password": PASSWORD, "schema.registry.basic.auth.user.info": PASSWORD})))
    assert not [text for text in shown if PASSWORD in text or "horse" in text]
    assert "[hidden]" in repr(security)
    copy = pickle.loads(pickle.dumps(security))
    assert copy == security and copy.sasl.password.reveal() == PASSWORD


def test_secrets_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALICE", PASSWORD)
    path = tmp_path / "alice"
    path.write_text(PASSWORD + "\n")
    assert Secret.of("env:ALICE").reveal() == Secret.of(f"file:{path}").reveal() == PASSWORD
    path.write_text("another\n")
    assert Secret.of(f"file:{path}").reveal() == "another"
    monkeypatch.delenv("ALICE")
    with pytest.raises(SecretMissing, match="ALICE"):
        Secret.of("env:ALICE").reveal()
    with pytest.raises(SecretMissing, match="No such file"):
        Secret.of(f"file:{tmp_path / 'none'}").reveal()


def test_sources_of_tokens() -> None:
    def source(**more: str) -> object:
        settings = OAUTH | {name.replace("_", "."): value for name, value in more.items()}
        sasl = Security.of(settings).sasl
        assert sasl is not None
        return sasl.tokens

    url = "https://id.example.org/token"
    assert source(sasl_oauthbearer_token_endpoint_url="file:///run/my%20token") == TokenFile("/run/my token")
    wanted = TokenEndpoint(url, "me", Secret(PASSWORD), "kafka")
    assert wanted == source(
        sasl_oauthbearer_token_endpoint_url=url,
        sasl_oauthbearer_client_credentials_client_id="me",
        sasl_oauthbearer_client_credentials_client_secret=PASSWORD,
        sasl_oauthbearer_scope="kafka",
    )
    assert wanted == source(
        sasl_oauthbearer_token_endpoint_url=url,
        sasl_jaas_config=f'{OAUTH_LINE} clientId="me" clientSecret="{PASSWORD}" scope="kafka";',
    )
    assert source(sasl_jaas_config=f'{OAUTH_LINE} unsecuredLoginStringClaim_sub="alice";') == UnsecuredToken(
        (("sub", "alice"),)
    )
    provided = Security.of(OAUTH, token_provider=lambda: "a.b.c").sasl
    assert provided is not None and isinstance(provided.tokens, TokenFunction) and provided.tokens.token() == "a.b.c"


def test_plaintext_is_no_security() -> None:
    assert as_security({}) is None and as_security({"security.protocol": "PLAINTEXT"}) is None
    assert as_security(Security()) is None and Security.of({}).protocol is SecurityProtocol.PLAINTEXT
    with pytest.raises(TypeError, match="security is a mapping"):
        as_security("SASL_SSL")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"sasl\.password is a int"):
        as_security({"sasl.password": 1})  # type: ignore[dict-item]


def test_names_mean_what_brokers_declare() -> None:
    """Clients and brokers share most names: what is a secret, a class or without effect is declared there once."""
    shared = [BROKER_SETTINGS[name] for name in KNOWN if name in BROKER_SETTINGS]
    assert len(shared) > 40
    public = {"ssl.keystore.certificate.chain", "ssl.truststore.certificates"}  # certificates, which Kafka hides
    secrets = {each.name for each in shared if each.kind is SettingKind.PASSWORD} - public
    assert secrets == {name for name in SECRETS if name in BROKER_SETTINGS}
    classes = {each.name for each in shared if each.kind is SettingKind.CLASS} | {"security.providers", "ssl.provider"}
    assert classes == JAVA_CLASSES
    unused = {each.name for each in shared if each.no_effect is not None} - classes
    assert unused == {name for name in WITHOUT_EFFECT if name in BROKER_SETTINGS}
