"""Decisions: what one client may do, as the authorizer has decided it, remembered for as long as nothing changes.

A connection asks the same few questions with every request (may this client write to this topic?), so it remembers the
answers. All of them are forgotten when the authorizer's version changes, and when there are too many, or their names
are too long together. The answer for a very long name is not remembered: any client may ask about any name.
"""

from __future__ import annotations

from sys import getsizeof

from ottla.model import limits
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclResourceType
from ottla.security.authorizer import Authorizer
from ottla.security.principal import Principal

_OPERATION_BITS = 8


class Decisions:
    __slots__ = (
        "_count",
        "_host",
        "_known",
        "_names_bytes",
        "_some",
        "authorizer",
        "only_validates",
        "principal",
        "producing",
        "silent",
        "version",
        "writable",
    )

    def __init__(
        self, authorizer: Authorizer, principal: Principal, host: str, silent: Authorizer | None = None
    ) -> None:
        """`silent` decides as `authorizer` does, without writing to the audit log; None: there is no audit log. It has
        the same version, which it tells more quickly.
        """
        self.principal = principal
        self.authorizer = authorizer
        self.silent = authorizer if silent is None else silent
        self._host = host
        self.version = self.silent.version
        self._known: dict[int, dict[str, bool]] = {}  # by resource type and operation, then by the resource's name
        self._some: dict[int, bool] = {}  # whether there is one such resource, by resource type and operation
        self._count = 0
        self._names_bytes = 0  # of all names that are remembered
        # Topics that are known to be writable, by name or by id: the question of almost every Produce.
        self.writable: set[str | bytes] = set()
        # Whether the request that asks changes nothing: what is allowed is neither noted as a change nor remembered.
        self.only_validates = False
        self.producing: str | None = None  # the transactional id that was last found to be writable

    def note_writable(self, topic: str | bytes) -> None:
        """Remember that a topic may be written, until something changes."""
        if topic not in self.writable and len(self.writable) < limits.DECISIONS_PER_CONNECTION_MAX:
            size = getsizeof(topic)
            if size <= min(limits.DECISION_NAME_BYTES_MAX, limits.DECISIONS_NAMES_BYTES_MAX - self._names_bytes):
                self._names_bytes += size
                self.writable.add(topic)

    def note_producing(self, transactional_id: str) -> None:
        """Remember that a transactional id may be written, until something changes or another one is noted."""
        self.producing = transactional_id if getsizeof(transactional_id) <= limits.DECISION_NAME_BYTES_MAX else None

    def allows(self, operation: AclOperation, resource: AclResourceType, name: str) -> bool:
        """Return whether the client may carry out the operation on the resource."""
        if self.silent.version != self.version:
            self._forget()
        names = self._known.get(resource << _OPERATION_BITS | operation)
        if names is not None:
            decided = names.get(name)
            if decided is not None:
                return decided
        return self._decide(operation, resource, name)

    def allows_on_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may carry out the operation on the cluster."""
        return self.allows(operation, AclResourceType.CLUSTER, CLUSTER_NAME)

    def suffices_on_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may carry out the operation on the cluster, for a request that another right
        would be enough for, too. So a refusal here does not refuse the request, and is not in the audit log.
        """
        asked = operation, AclResourceType.CLUSTER, CLUSTER_NAME
        return self.silent.allows(self.principal, self._host, *asked) and self.allows(*asked)

    def allows_some(self, operation: AclOperation, resource: AclResourceType) -> bool:
        """Return whether the client may carry out the operation on at least one resource of the type."""
        if self.silent.version != self.version:
            self._forget()
        question = resource << _OPERATION_BITS | operation
        decided = self._some.get(question)
        if decided is None:
            decided = self.authorizer.allows_some(self.principal, self._host, operation, resource)
            self._some[question] = decided
        return decided

    def allows_now(self, operation: AclOperation, resource: AclResourceType, name: str) -> bool:
        """Return whether the client sees a resource that it did not name: the answer is not remembered, and not in the
        audit log.
        """
        return self.silent.allows(self.principal, self._host, operation, resource, name)

    def _decide(self, operation: AclOperation, resource: AclResourceType, name: str) -> bool:
        if self.only_validates and self.silent.allows(self.principal, self._host, operation, resource, name):
            return True
        decided = self.authorizer.allows(self.principal, self._host, operation, resource, name)
        size = getsizeof(name)
        if size > limits.DECISION_NAME_BYTES_MAX:
            return decided
        if (
            self._count >= limits.DECISIONS_PER_CONNECTION_MAX
            or self._names_bytes + size > limits.DECISIONS_NAMES_BYTES_MAX
        ):
            self._forget()
        self._known.setdefault(resource << _OPERATION_BITS | operation, {})[name] = decided
        self._count += 1
        self._names_bytes += size
        return decided

    def _forget(self) -> None:
        self._known.clear()
        self._some.clear()
        self.writable.clear()
        self.producing = None
        self._count = self._names_bytes = 0
        self.version = self.silent.version
