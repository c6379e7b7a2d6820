"""Logins by OAUTHBEARER with tokens of an OpenID Connect provider, in the words of each client."""

import asyncio
import json
import ssl
import urllib.parse
import urllib.request
import warnings
from base64 import b64encode
from typing import Any

from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from tests.support.clients.security import ClientSecurity
from tests.support.waiting import WAIT_S

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # importing it uses a deprecated function of Python
    from kafka.net.sasl.oauth import AbstractTokenProvider

SCOPE = "kafka"
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
_LOGIN = f"{_PACKAGE}.OAuthBearerLoginModule required"


class OAuthSecurity(ClientSecurity):
    """`user` and `password` are the client's id and secret; the provider gives tokens at `token_url`."""

    def java(self) -> dict[str, str]:
        line = f'{_LOGIN} clientId="{self.user}" clientSecret="{self.password}" scope="{SCOPE}";'
        return self.java_tls() | {
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": line,
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
            "sasl.login.callback.handler.class": f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
        }

    def librdkafka(self) -> dict[str, str]:
        own = {
            "security.protocol": self.protocol,
            "sasl.mechanisms": self.mechanism,
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": self.user,
            "sasl.oauthbearer.client.secret": self.password,
            "sasl.oauthbearer.scope": SCOPE,
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
        }
        return own | ({"ssl.ca.location": self.authority} if self.authority else {})

    def python(self) -> dict[str, Any]:
        return self.python_tls() | {"sasl_mechanism": self.mechanism, "sasl_oauth_token_provider": Tokens(self)}

    def aiokafka(self) -> dict[str, Any]:
        return self.python() | {"sasl_oauth_token_provider": AioTokens(self)}

    def fetch(self) -> str:
        """A new token, by client credentials."""
        form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": SCOPE}).encode()
        basic = b64encode(f"{self.user}:{self.password}".encode()).decode()
        request = urllib.request.Request(self.token_url, form, {"Authorization": f"Basic {basic}"})
        tls = ssl.create_default_context(cafile=self.authority) if self.token_url.startswith("https:") else None
        with urllib.request.urlopen(request, timeout=WAIT_S, context=tls) as answer:
            return str(json.load(answer)["access_token"])


class Tokens(AbstractTokenProvider):
    """What kafka-python asks for tokens."""

    def __init__(self, security: OAuthSecurity) -> None:
        super().__init__()
        self._security = security

    def token(self) -> str:
        return self._security.fetch()


class AioTokens(AioTokenProvider):
    """What aiokafka asks for tokens."""

    def __init__(self, security: OAuthSecurity) -> None:
        self._security = security

    async def token(self) -> str:
        return await asyncio.to_thread(self._security.fetch)
