"""ListenerOauth: OAUTHBEARER on one listener: which tokens it accepts, and the keys that they are checked with.

Kafka accepts tokens without a signature unless it is told to check them. Here it is the other way round: they are
accepted only if `sasl.server.callback.handler.class` names Kafka's class for them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.settings.sasl import (
    SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS,
    SASL_OAUTHBEARER_EXPECTED_AUDIENCE,
    SASL_OAUTHBEARER_EXPECTED_ISSUER,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS,
    SASL_OAUTHBEARER_JWKS_ENDPOINT_URL,
    SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS,
    SASL_OAUTHBEARER_SCOPE_CLAIM_NAME,
    SASL_OAUTHBEARER_SUB_CLAIM_NAME,
    SASL_SERVER_CALLBACK_HANDLER_CLASS,
)
from ottla.security.jwt import TokenExpectations
from ottla.security.sasl.jaas import InvalidJaas, parse_jaas_line
from ottla.security.sasl.oauthbearer import OAUTHBEARER
from ottla.server.loop.runtime import Runtime
from ottla.server.security.key_document import KeyDocument
from ottla.server.security.oauth_conversation import OauthConversation, TokenRules
from ottla.server.security.provider_trust import provider_tls
from ottla.server.security.verification_keys import ReadingPlace, VerificationKeys

log = logging.getLogger(__name__)

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_SECURED: Final = (
    None,
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",  # its name before Kafka 4.0
)
_UNSECURED: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
# Kafka's other validator, ClientJwtValidator, does not check signatures.
_VALIDATORS: Final = (f"{_PACKAGE}.DefaultJwtValidator", f"{_PACKAGE}.BrokerJwtValidator")
# Options of the login module for tokens without a signature.
_PRINCIPAL_CLAIM: Final = "unsecuredValidatorPrincipalClaimName"
_SCOPE_CLAIM: Final = "unsecuredValidatorScopeClaimName"
_REQUIRED_SCOPE: Final = "unsecuredValidatorRequiredScope"
_CLOCK_SKEW_MS: Final = "unsecuredValidatorAllowableClockSkewMs"


class _KeySettings(NamedTuple):
    """What the keys depend on: while it stays the same, so do the keys."""

    document: KeyDocument
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int


class ListenerOauth:
    def __init__(
        self,
        listener: str,
        runtime: Runtime,
        config: Config,
        options: Mapping[str, str],
        earlier: ListenerOauth | None = None,
    ) -> None:
        """`options` are those of the login module; the keys of `earlier` are used on if they are still the right ones.

        Raise ValueError if tokens cannot be checked.
        """
        self._listener = listener
        self._runtime = runtime
        self._made_of: _KeySettings | None
        handler, validator = config[SASL_SERVER_CALLBACK_HANDLER_CLASS], config[SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS]
        if handler == _UNSECURED:
            self._rules, self._made_of = _unsecured_rules(options), None
        elif handler not in _SECURED:
            raise ValueError(
                f"{SASL_SERVER_CALLBACK_HANDLER_CLASS.name} names Java code, which cannot be run: {handler}"
            )
        elif validator not in _VALIDATORS:
            raise ValueError(
                f"{SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS.name} is {' or '.join(_VALIDATORS)}, not {validator}"
            )
        else:
            self._rules, self._made_of = TokenRules(_expectations(config)), _key_settings(config, options)
        self._keys: VerificationKeys | None
        if earlier is not None and earlier._made_of == self._made_of:
            self._keys = earlier._keys
        else:
            self._keys = self._new_keys()

    def _new_keys(self) -> VerificationKeys | None:
        made_of = self._made_of
        if made_of is None:
            return None
        return VerificationKeys(
            made_of.document.read,
            ReadingPlace(self._runtime.in_worker, self._runtime.tasks.spawn, self._runtime.steady_ms),
            name=f"listener {self._listener}, {made_of.document.shown}",
            refresh_ms=made_of.refresh_ms,
            backoff_ms=made_of.backoff_ms,
            backoff_max_ms=made_of.backoff_max_ms,
        )

    def warn(self) -> None:
        """Warn if tokens are not checked; called when these settings are used."""
        if self._made_of is None:
            log.warning(
                "listener %s accepts tokens that nobody has signed: whoever reaches it can claim to be any user",
                self._listener,
            )

    def new_conversation(self) -> OauthConversation:
        return OauthConversation(self._keys, self._rules, self._runtime.now_ms)

    def refresh(self) -> None:
        """Begin to read the keys if it is time to; called from time to time."""
        if self._keys is not None:
            self._keys.refresh()


def bearer_tokens(listener: str, runtime: Runtime, config: Config, jaas: str | None) -> ListenerOauth | None:
    """Return the check of tokens that come over HTTP; None if those of the listener have no signature, because then
    whoever reaches it could claim to be any user. Raise INVALID_CONFIG if tokens cannot be checked.
    """
    if config[SASL_SERVER_CALLBACK_HANDLER_CLASS] == _UNSECURED:
        return None
    try:
        made = ListenerOauth(listener, runtime, config, parse_jaas_line(jaas).options if jaas else {})
    except (InvalidJaas, ValueError) as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"listener {listener}: {OAUTHBEARER}: {error}") from None
    made.refresh()
    return made


def _expectations(config: Config) -> TokenExpectations:
    return TokenExpectations(
        issuer=config[SASL_OAUTHBEARER_EXPECTED_ISSUER],
        audiences=frozenset(config[SASL_OAUTHBEARER_EXPECTED_AUDIENCE]),
        clock_skew_ms=config[SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS] * 1000,
        scope_claim=config[SASL_OAUTHBEARER_SCOPE_CLAIM_NAME],
        sub_claim=config[SASL_OAUTHBEARER_SUB_CLAIM_NAME],
    )


def _unsecured_rules(options: Mapping[str, str]) -> TokenRules:
    skew = options.get(_CLOCK_SKEW_MS) or "0"
    if not skew.isdecimal():
        raise ValueError(f"{_CLOCK_SKEW_MS} is a number of milliseconds")
    expectations = TokenExpectations(
        clock_skew_ms=int(skew),
        scope_claim=options.get(_SCOPE_CLAIM) or "scope",
        sub_claim=options.get(_PRINCIPAL_CLAIM) or "sub",
        allow_unsecured=True,
    )
    return TokenRules(expectations, frozenset(options.get(_REQUIRED_SCOPE, "").split()))


def _key_settings(config: Config, options: Mapping[str, str]) -> _KeySettings:
    url = config[SASL_OAUTHBEARER_JWKS_ENDPOINT_URL]
    if not url:
        raise ValueError(
            f"{SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.name} is not set, so tokens cannot be checked. (For tokens that "
            f"nobody has signed, set {SASL_SERVER_CALLBACK_HANDLER_CLASS.name} to {_UNSECURED}.)"
        )
    try:
        document = KeyDocument(url, provider_tls(config, options))
    except ValueError as error:
        raise ValueError(f"{SASL_OAUTHBEARER_JWKS_ENDPOINT_URL.name}: {error}") from None
    return _KeySettings(
        document,
        config[SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS],
        max(config[SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS], 1),
        config[SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS],
    )
