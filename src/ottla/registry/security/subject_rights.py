"""Rights on subjects, by the ACLs of topics.

The subject `orders-value` (or `orders-key`) belongs to the topic `orders`, in every context; every other subject to a
topic of its own name, which need not exist. What a client may do to the topic decides what it may do to the subject.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from ottla.registry.security.caller import Caller
from ottla.registry.security.refusals import Forbidden, MissingRight
from ottla.schemas.registry.names import is_context, normal, split
from ottla.security.access_rules import AccessRules
from ottla.security.acls import CLUSTER_NAME, AclOperation, AclResourceType

_SUFFIXES: Final = ("-key", "-value")


class SubjectRight(Enum):
    """The right that a route needs. A right on a subject is one on the subject in the path of the request."""

    AUTHENTICATED = "to be authenticated; a handler that lists subjects leaves out those that the client may not see"
    READ = "Describe on the topic, which Read and Write include"
    REGISTER = "Write on the topic; Alter on the cluster, too, to choose the id"
    DELETE = "Delete on the topic"
    READ_SETTINGS = "Describe on the topic; nothing for the settings of a context or of all"
    CHANGE_SETTINGS = "AlterConfigs or Alter on the topic; Alter on the cluster for the settings of a context or of all"
    ADMINISTER = "Alter on the cluster"


_OPERATIONS: Final[Mapping[SubjectRight, tuple[AclOperation, ...]]] = {
    SubjectRight.READ: (AclOperation.DESCRIBE,),
    SubjectRight.REGISTER: (AclOperation.WRITE,),
    SubjectRight.DELETE: (AclOperation.DELETE,),
    SubjectRight.READ_SETTINGS: (AclOperation.DESCRIBE,),
    SubjectRight.CHANGE_SETTINGS: (AclOperation.ALTER_CONFIGS, AclOperation.ALTER),
}


def topic_of(subject: str) -> str:
    """Return the topic that a subject belongs to."""
    name = split(subject).subject
    found = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), "")
    return found or name


class SubjectRights:
    """The rights of one client, decided by one set of rules; None allows everything. It may be used in threads."""

    def __init__(self, caller: Caller | None = None, rules: AccessRules | None = None) -> None:
        self._caller = caller
        self._rules = rules

    @property
    def are_limited(self) -> bool:
        return self._rules is not None

    def sees(self, subject: str) -> bool:
        """Return whether the client may know of the subject, and of its schemas."""
        return self._may(AclOperation.DESCRIBE, AclResourceType.TOPIC, topic_of(subject))

    def check(self, right: SubjectRight, subject: str) -> None:
        """Raise Forbidden unless the client has a right; the subject is as written in the path, or empty."""
        if right is SubjectRight.AUTHENTICATED:
            return
        of_many = is_context(normal(subject)) and right in (SubjectRight.READ_SETTINGS, SubjectRight.CHANGE_SETTINGS)
        if of_many and right is SubjectRight.READ_SETTINGS:
            return
        if of_many or right is SubjectRight.ADMINISTER:
            self._check_cluster("User is denied operation Alter on the cluster")
            return
        operations = _OPERATIONS[right]
        topic = topic_of(normal(subject))
        if not any(self._may(each, AclResourceType.TOPIC, topic) for each in operations):
            wanted = " or ".join(each.name.replace("_", " ").title().replace(" ", "") for each in operations)
            missing = MissingRight(operations[0], AclResourceType.TOPIC, topic)
            raise Forbidden(f"User is denied operation {wanted} on Subject: {subject}", missing)

    def check_seen(self, subject: str) -> None:
        """Raise Forbidden unless the client may know of the subject, which a schema refers to."""
        if not self.sees(subject):
            missing = MissingRight(AclOperation.DESCRIBE, AclResourceType.TOPIC, topic_of(subject))
            raise Forbidden(f"User is denied operation Describe on Subject: {subject}", missing)

    def check_import(self) -> None:
        """Raise Forbidden unless the client may choose ids: all subjects of a context share them."""
        self._check_cluster(
            "User is denied operation Alter on the cluster, which mode IMPORT and registering with an id need: "
            "subjects share their ids"
        )

    def check_metrics(self) -> None:
        """Raise Forbidden unless the client may read the registry's metrics: those who may read a node's."""
        self._check_cluster("User is denied operation Describe on the cluster", AclOperation.DESCRIBE)

    def _check_cluster(self, refusal: str, operation: AclOperation = AclOperation.ALTER) -> None:
        if not self._may(operation, AclResourceType.CLUSTER, CLUSTER_NAME):
            raise Forbidden(refusal, MissingRight(operation, AclResourceType.CLUSTER, CLUSTER_NAME))

    def _may(self, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        if self._rules is None or self._caller is None:
            return True
        return self._rules.allows(self._caller.principal, self._caller.host, operation, kind, name)


EVERYTHING: Final = SubjectRights()
