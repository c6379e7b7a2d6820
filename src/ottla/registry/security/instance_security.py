"""The security of one instance, put together from its settings."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.client.cluster import Cluster
from ottla.client.security.tls import Tls
from ottla.client.security.values import SettingValues
from ottla.model.config import Config
from ottla.model.settings.authorizer import ALLOW_EVERYONE_IF_NO_ACL_FOUND, SUPER_USERS
from ottla.model.settings.registry import (
    AUTHENTICATION_METHOD,
    AUTHENTICATION_REALM,
    AUTHENTICATION_SASL_MECHANISM,
    FAILED_AUTHENTICATION_DELAY_MS,
    INTER_INSTANCE_PRINCIPALS,
    JWKS_ENDPOINT_REFRESH_MS,
    JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS,
    JWKS_ENDPOINT_RETRY_BACKOFF_MS,
    JWKS_ENDPOINT_URL,
    TOKEN_CLOCK_SKEW_SECONDS,
    TOKEN_EXPECTED_AUDIENCE,
    TOKEN_EXPECTED_ISSUER,
    TOKEN_SCOPE_CLAIM_NAME,
    TOKEN_SUB_CLAIM_NAME,
)
from ottla.registry.security.audit import RegistryAudit
from ottla.registry.security.authentication import CallerAuthentication, Methods
from ottla.registry.security.cluster_acls import ClusterAcls
from ottla.registry.security.forward_seal import ForwardSeal
from ottla.registry.security.gate import RegistryGate
from ottla.registry.security.https_listener import HttpsListener
from ottla.registry.security.instances import Instances
from ottla.registry.security.passwords import MECHANISMS, PasswordCheck
from ottla.registry.security.settings import InvalidRegistrySettings, methods_of, secret_of
from ottla.registry.security.token_keys import JwksSource, TokenKeys
from ottla.registry.security.tokens import TokenCheck
from ottla.security.jwt import TokenExpectations
from ottla.security.super_users import super_users
from ottla.server.security.key_document import KeyDocument
from ottla.server.security.listener_tls import ssl_values
from ottla.server.security.provider_trust import provider_tls

_MILLIS = 1_000


@dataclass(eq=False, slots=True, frozen=True)
class InstanceSecurity:
    """The parts, some of which run. `gate` is None without authentication."""

    instances: Instances
    https: HttpsListener | None
    audit: RegistryAudit | None = None
    gate: RegistryGate | None = None
    acls: ClusterAcls | None = None
    keys: TokenKeys | None = None

    @classmethod
    def of(cls, config: Config, cluster: Cluster, url: str) -> InstanceSecurity:
        """Raises InvalidRegistrySettings, ApiError (INVALID_CONFIG)."""
        https = HttpsListener(config, cluster.options.now_ms) if url.startswith("https:") else None
        instances = _instances(config, cluster, https)
        audit = RegistryAudit.of(config, cluster.options.now_ms)
        methods = methods_of(config)
        if not methods:
            return cls(instances, https, audit)
        if "ssl" in methods and https is None:
            raise InvalidRegistrySettings(f"{AUTHENTICATION_METHOD.name}=ssl needs an https listener")
        tokens = _tokens(config, cluster) if "bearer" in methods else None
        ways = Methods(
            PasswordCheck(cluster, _mechanism(config, cluster)) if "basic" in methods else None,
            tokens,
            https if "ssl" in methods else None,
        )
        acls = ClusterAcls(
            cluster,
            _principals(SUPER_USERS.name, config[SUPER_USERS]),
            allow_everyone_if_no_acl_found=config[ALLOW_EVERYONE_IF_NO_ACL_FOUND],
        )
        asked = CallerAuthentication(ways, config[AUTHENTICATION_REALM], config[FAILED_AUTHENTICATION_DELAY_MS])
        gate = RegistryGate(asked, acls, instances, url)
        return cls(instances, https, audit, gate, acls, None if tokens is None else tokens.keys)

    def start(self) -> None:
        for each in (self.https, self.acls, self.keys, self.audit):
            if each is not None:
                each.start()

    async def stop(self) -> None:
        for each in (self.https, self.acls, self.keys):
            if each is not None:
                each.stop()
        if self.audit is not None:
            await self.audit.stop()


def _instances(config: Config, cluster: Cluster, https: HttpsListener | None) -> Instances:
    secret = secret_of(config)
    now_ms = cluster.options.now_ms
    return Instances(
        now_ms,
        None if secret is None else ForwardSeal(secret, now_ms),
        None if https is None else Tls.of(SettingValues(ssl_values(config))),
        _principals(INTER_INSTANCE_PRINCIPALS.name, config[INTER_INSTANCE_PRINCIPALS]),
        https,
    )


def _mechanism(config: Config, cluster: Cluster) -> str:
    """Return the mechanism by which brokers check passwords."""
    own = cluster.options.known_security
    sasl = None if own is None else own.sasl
    mechanism = config[AUTHENTICATION_SASL_MECHANISM] or (None if sasl is None else sasl.mechanism)
    if mechanism not in MECHANISMS:
        raise InvalidRegistrySettings(
            f"{AUTHENTICATION_METHOD.name}=basic asks brokers by SASL: set kafkastore.security.protocol to SASL_SSL "
            f"and kafkastore.sasl.mechanism to one of {', '.join(MECHANISMS)}, or {AUTHENTICATION_SASL_MECHANISM.name}"
        )
    return mechanism


def _tokens(config: Config, cluster: Cluster) -> TokenCheck:
    url = config[JWKS_ENDPOINT_URL]
    if not url:
        raise InvalidRegistrySettings(f"{AUTHENTICATION_METHOD.name}=bearer needs {JWKS_ENDPOINT_URL.name}")
    try:
        source = JwksSource(
            KeyDocument(url, provider_tls(config)),
            config[JWKS_ENDPOINT_REFRESH_MS],
            config[JWKS_ENDPOINT_RETRY_BACKOFF_MS],
            config[JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS],
        )
    except ValueError as error:
        raise InvalidRegistrySettings(f"{JWKS_ENDPOINT_URL.name}: {error}") from None
    expectations = TokenExpectations(
        issuer=config[TOKEN_EXPECTED_ISSUER],
        audiences=frozenset(config[TOKEN_EXPECTED_AUDIENCE]),
        clock_skew_ms=config[TOKEN_CLOCK_SKEW_SECONDS] * _MILLIS,
        scope_claim=config[TOKEN_SCOPE_CLAIM_NAME],
        sub_claim=config[TOKEN_SUB_CLAIM_NAME],
    )
    return TokenCheck(TokenKeys(source), expectations, cluster.options.now_ms)


def _principals(name: str, text: str) -> frozenset[str]:
    try:
        return super_users(text)
    except ValueError as error:
        raise InvalidRegistrySettings(f"{name}: {error}") from None
