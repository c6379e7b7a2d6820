"""Credentials: what the cluster's metadata knows about users and delegation tokens, for SCRAM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from itertools import islice

from ottla.cluster.state import ClusterState
from ottla.model import limits
from ottla.model.ids import BitSource
from ottla.security.delegation_tokens import token_identity
from ottla.security.principal import Principal
from ottla.security.sasl.scram.credentials import ScramCredential, ScramIdentity, ScramMechanism

_SECRET_BITS = 256


class Credentials:
    def __init__(
        self,
        state: Callable[[], ClusterState],
        secret_key: str | None,
        now_ms: Callable[[], int],
        unknown_users: Callable[[], str | None],
        rng: BitSource,
    ) -> None:
        """`secret_key` is the key of delegation tokens; None if there are no tokens. `unknown_users` returns the
        setting `ottla.scram.unknown.users.secret`.
        """
        self._state = state
        self._unknown_users = unknown_users
        self._own_secret = rng.getrandbits(_SECRET_BITS).to_bytes(_SECRET_BITS // 8)
        self._secret_key = secret_key
        self._now_ms = now_ms
        # Derived once per token, because that takes milliseconds.
        self._derived = lru_cache(limits.TOKEN_IDENTITIES_MAX)(token_identity)

    def scram(self, mechanism: ScramMechanism, name: str, is_token: bool) -> ScramIdentity | None:
        """Return the identity behind a user name, or behind the id of a delegation token."""
        if is_token:
            return self._token(mechanism, name)
        record = self._state().scram.get((name, mechanism))
        if record is None:
            return None
        credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
        return ScramIdentity(credential, Principal.user(name))

    def of_unknown_users(self) -> tuple[bytes, int]:
        """Return what credentials of users that do not exist are made of: a secret, and the usual number of iterations.

        The secret is that of the cluster, the same on all brokers. A cluster whose passwords were all set by another
        release, or by a real Kafka, has none: then it is one of this listener, for as long as the node runs.
        """
        known = self._unknown_users()
        some = islice(self._state().scram.values(), limits.SCRAM_CREDENTIALS_COMPARED)
        usual = Counter(each.iterations for each in some).most_common(1)
        iterations = usual[0][0] if usual else limits.SCRAM_ITERATIONS_MIN
        return known.encode() if known else self._own_secret, max(iterations, limits.SCRAM_ITERATIONS_MIN)

    @property
    def derives(self) -> bool:
        """Whether a look-up may take milliseconds, because it derives the credential of a delegation token."""
        return self._secret_key is not None

    def _token(self, mechanism: ScramMechanism, token_id: str) -> ScramIdentity | None:
        token = self._state().tokens.get(token_id)
        if token is None or self._secret_key is None or token.expiration_timestamp <= self._now_ms():
            return None
        return self._derived(mechanism, token_id, token.owner, token.expiration_timestamp, self._secret_key)
