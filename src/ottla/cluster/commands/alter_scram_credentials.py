"""AlterScramCredentials: set and remove the SCRAM credentials of users; each user succeeds or fails by itself.

A client sends the salt and the salted password, never the password. The journal gets the salt, the iterations and the
two keys that follow from the salted password. Together with the first credential of a cluster, a random secret is
written, from which all brokers derive the same answer for a user that does not exist. It is a setting of all brokers
(`ottla.scram.unknown.users.secret`), which a real Kafka keeps as well; brokers never show its value.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cluster import features
from ottla.cluster.decision import Deciding
from ottla.cluster.entry import MetadataEntry
from ottla.cluster.view import MetadataView
from ottla.machine.kit import Result
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import BitSource
from ottla.model.limits import (
    CREDENTIALS_PER_REQUEST_MAX,
    CREDENTIALS_PER_SLICE,
    SCRAM_ITERATIONS_MAX,
    SCRAM_ITERATIONS_MIN,
    SCRAM_SALT_BYTES_MAX,
)
from ottla.model.resources import ResourceType
from ottla.model.settings.sasl import OTTLA_SCRAM_UNKNOWN_USERS_SECRET
from ottla.security.sasl.scram.credentials import ScramCredential, ScramMechanism, credential_of_salted
from ottla.wire.journal import cluster_metadata as journal

_MECHANISMS = frozenset(ScramMechanism)
_ALL_BROKERS = ""
_SECRET_BITS = 256


class ScramDeletion(NamedTuple):
    """A credential to remove; `mechanism` is as the client sent it and may be no valid number."""

    user: str
    mechanism: int


class ScramUpsertion(NamedTuple):
    """A credential to set. `repr` leaves out what could help somebody to guess the password."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion(user={self.user!r}, mechanism={self.mechanism})"


class ScramAlteration(NamedTuple):
    """The result for one user."""

    user: str
    error: ApiError | None


@dataclass(frozen=True, slots=True)
class AlterScramCredentials:
    """Replies with a ScramAlteration for each user: those that succeeded first. One request can alter a user once."""

    deletions: tuple[ScramDeletion, ...]
    upsertions: tuple[ScramUpsertion, ...]

    def decide(self, view: MetadataView, now_ms: int) -> Deciding[list[ScramAlteration]]:
        if len(self.deletions) + len(self.upsertions) > CREDENTIALS_PER_REQUEST_MAX:
            raise ApiError(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")
        records: dict[str, MetadataEntry] = {}
        errors: dict[str, ApiError] = {}
        changes: list[ScramDeletion | ScramUpsertion] = [*self.deletions, *self.upsertions]
        for number, change in enumerate(changes, start=1):
            if number % CREDENTIALS_PER_SLICE == 0:
                yield
            user = change.user
            if user in errors:
                continue
            if records.pop(user, None) is not None:
                twice = "A user credential cannot be altered twice in the same request"
                errors[user] = ApiError(ErrorCode.DUPLICATE_RESOURCE, twice)
                continue
            try:
                records[user] = _record(view, change)
            except ApiError as error:
                errors[user] = error
        outcomes = [ScramAlteration(user, None) for user in records]
        outcomes += [ScramAlteration(user, error) for user, error in errors.items()]
        return Result([*_missing_secret(self, records, view), *records.values()], outcomes)


def _missing_secret(
    asked: AlterScramCredentials, records: Collection[str], view: MetadataView
) -> Sequence[MetadataEntry]:
    """Return the record of the secret if a credential is set and there is no secret yet."""
    known = view.state.config(ResourceType.BROKER, _ALL_BROKERS)
    if OTTLA_SCRAM_UNKNOWN_USERS_SECRET.name in known or view.defaults[OTTLA_SCRAM_UNKNOWN_USERS_SECRET]:
        return ()
    return (unknown_users_entry(view.rng),) if any(each.user in records for each in asked.upsertions) else ()


def _record(view: MetadataView, change: ScramDeletion | ScramUpsertion) -> MetadataEntry:
    if view.state.metadata_version < features.SCRAM:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    mechanism = _checked_mechanism(change)
    if isinstance(change, ScramDeletion):
        return _removal(view.state.scram, change)
    _check(change)
    credential = credential_of_salted(change.salted_password, change.salt, change.iterations, mechanism)
    return scram_entry(change.user, mechanism, credential)


def _checked_mechanism(change: ScramDeletion | ScramUpsertion) -> ScramMechanism:
    if not change.user:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in _MECHANISMS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return ScramMechanism(change.mechanism)


def _removal(known: Collection[tuple[str, int]], deletion: ScramDeletion) -> MetadataEntry:
    if (deletion.user, deletion.mechanism) not in known:
        missing = "Attempt to delete a user credential that does not exist"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, missing)
    return MetadataEntry(journal.RemoveUserScramCredentialRecord(name=deletion.user, mechanism=deletion.mechanism))


def _check(upsertion: ScramUpsertion) -> None:
    problem = None
    if upsertion.iterations < SCRAM_ITERATIONS_MIN:
        problem = "Too few iterations"
    elif upsertion.iterations > SCRAM_ITERATIONS_MAX:
        problem = "Too many iterations"
    elif len(upsertion.salt) > SCRAM_SALT_BYTES_MAX:
        problem = f"The salt is longer than {SCRAM_SALT_BYTES_MAX} bytes"
    elif not upsertion.salted_password:
        problem = "The salted password must not be empty"
    if problem is not None:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, problem)


def unknown_users_entry(rng: BitSource) -> MetadataEntry:
    """Return the record of a new secret for users that do not exist."""
    secret = rng.getrandbits(_SECRET_BITS).to_bytes(_SECRET_BITS // 8)
    return MetadataEntry(
        journal.ConfigRecord(
            resource_type=ResourceType.BROKER,
            resource_name=_ALL_BROKERS,
            name=OTTLA_SCRAM_UNKNOWN_USERS_SECRET.name,
            value=b64encode(secret).decode(),
        )
    )


def scram_entry(user: str, mechanism: ScramMechanism, credential: ScramCredential) -> MetadataEntry:
    """Return the record that stores a credential."""
    return MetadataEntry(
        journal.UserScramCredentialRecord(
            name=user,
            mechanism=mechanism,
            salt=credential.salt,
            stored_key=credential.stored_key,
            server_key=credential.server_key,
            iterations=credential.iterations,
        )
    )
