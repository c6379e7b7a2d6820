"""MetricsGate: who may read metrics beyond loopback: a user of the cluster who may describe it.

A client proves who it is by its certificate (as on a listener of the protocol SSL), or by a user name and a password in
each request (HTTP basic authentication): those of SCRAM users of the cluster, or of PLAIN users in the JAAS line
`listener.name.metrics.plain.sasl.jaas.config`. Or by a bearer token (JWT) of a provider, if
`sasl.oauthbearer.jwks.endpoint.url` names its keys: tokens are checked as those of a listener with OAUTHBEARER. With an
authorizer it needs DESCRIBE on the cluster.

Passwords are checked by workers, one at a time, because that takes milliseconds; addresses take turns. A failure is
answered after `connection.failed.authentication.delay.ms`, and counted with those of the listeners.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from functools import partial
from http import HTTPStatus

from ottla.model.settings.network import CONNECTION_FAILED_AUTHENTICATION_DELAY_MS
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclResourceType
from ottla.security.jwt import InvalidToken
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.sasl.jaas import InvalidJaas, parse_jaas_line, plain_users
from ottla.security.sasl.oauthbearer import OAUTHBEARER
from ottla.security.sasl.plain import PLAIN, check_against
from ottla.security.sasl.scram.credentials import (
    ScramCredential,
    ScramMechanism,
    credential_of,
    made_up_credential,
)
from ottla.server.loop.runtime import Runtime
from ottla.server.metrics.address_turns import AddressTurns
from ottla.server.metrics.http_endpoint import HttpAnswer, HttpRequest, refusal
from ottla.server.security.credentials import Credentials
from ottla.server.security.node_security import NodeSecurity
from ottla.server.settings.configs import Configs
from ottla.server.settings.listener_config import jaas_line
from ottla.server.settings.metrics_listener import METRICS

_BASIC, _BEARER = "basic", "bearer"
_CHALLENGE = 'WWW-Authenticate: Basic realm="ottla", charset="UTF-8"\r\n'
_OF_TOKENS = 'WWW-Authenticate: Bearer realm="ottla"\r\n'


class MetricsGate:
    def __init__(self, runtime: Runtime, configs: Configs, security: NodeSecurity, credentials: Credentials) -> None:
        self._runtime = runtime
        self._configs = configs
        self._security = security
        self._credentials = credentials
        self._tokens = security.bearer_tokens(METRICS)
        self._checking = AddressTurns()

    async def refused(self, request: HttpRequest) -> HttpAnswer | None:
        """Return the refusal of a request; None if its client may read metrics."""
        principal = await self._by_header(request) if request.principal is ANONYMOUS else request.principal
        if principal is None:
            return refusal(HTTPStatus.UNAUTHORIZED)._replace(
                headers=_CHALLENGE if self._tokens is None else _CHALLENGE + _OF_TOKENS,
                delay_s=self._configs.broker[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS] / 1000,
            )
        authorizer = self._security.authorization.authorizer
        if authorizer is None or authorizer.allows(
            principal, request.host, AclOperation.DESCRIBE, AclResourceType.CLUSTER, CLUSTER_NAME
        ):
            return None
        return refusal(HTTPStatus.FORBIDDEN)

    async def _by_header(self, request: HttpRequest) -> Principal | None:
        token = None if self._tokens is None else _bearer(request.authorization)
        return await self._by_password(request) if token is None else await self._by_token(request, token)

    async def _by_token(self, request: HttpRequest, token: str) -> Principal | None:
        assert self._tokens is not None, "see _by_header"
        self._tokens.refresh()
        try:
            valid = await self._tokens.new_conversation().check(token)
        except InvalidToken as error:
            self._security.logins.failed(METRICS, OAUTHBEARER, request.host, "", str(error))
            return None
        principal = Principal.user(valid.principal_name)
        self._security.logins.succeeded(METRICS, OAUTHBEARER, request.host, str(principal))
        return principal

    async def _by_password(self, request: HttpRequest) -> Principal | None:
        logins, host = self._security.logins, request.host
        given = _basic(request.authorization)
        if given is None:
            logins.failed(METRICS, "", host, "", "it sent no user and password")
            return None
        user, password = given
        async with self._checking.turn(host):
            mechanism, known = self._known(user)
            is_right = await self._runtime.in_worker(partial(_is_right, password, mechanism, known))
        proven = mechanism.sasl_name
        if not is_right and check_against(self._plain_users())(user, password) is not None:
            is_right, proven = True, PLAIN
        if not is_right:
            logins.failed(METRICS, proven, host, user, "Invalid username or password")
            return None
        principal = Principal.user(user)
        logins.succeeded(METRICS, proven, host, str(principal))
        return principal

    def _known(self, user: str) -> tuple[ScramMechanism, ScramCredential]:
        """Return a user's credential; of a user without one, a credential that takes as long to check."""
        for mechanism in reversed(ScramMechanism):
            found = self._credentials.scram(mechanism, user, is_token=False)
            if found is not None:
                return mechanism, found.credential
        secret, iterations = self._credentials.of_unknown_users()
        mechanism = ScramMechanism.SHA_512
        return mechanism, made_up_credential(user, secret, iterations, mechanism)

    def _plain_users(self) -> dict[str, str]:
        line = jaas_line(self._configs.node, METRICS, PLAIN)
        try:
            return plain_users([parse_jaas_line(line)]) if line else {}
        except InvalidJaas:
            return {}


def _is_right(password: str, mechanism: ScramMechanism, known: ScramCredential) -> bool:
    made = credential_of(password, known.salt, known.iterations, mechanism)
    return hmac.compare_digest(made.stored_key, known.stored_key)


def _basic(authorization: str) -> tuple[str, str] | None:
    """Return the user and the password of basic authentication (RFC 7617)."""
    scheme, _, encoded = authorization.partition(" ")
    try:
        user, colon, password = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return (user, password) if scheme.lower() == _BASIC and user and colon and password else None


def _bearer(authorization: str) -> str | None:
    """Return the token of a request (RFC 6750); None if it has none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == _BEARER else None
