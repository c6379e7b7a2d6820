"""Authorization: the access rules of this node, which follow the ACLs in the cluster's metadata.

Rules that are not loaded yet allow super users and nobody else, whatever `allow.everyone.if.no.acl.found` says: a
listener of controllers opens before the node has read the metadata, unless `early.start.listeners` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.entities import AclChanged, Change
from ottla.cluster.state import ClusterState
from ottla.model.config import Config
from ottla.model.settings.authorizer import ALLOW_EVERYONE_IF_NO_ACL_FOUND, AUTHORIZER_CLASS_NAME, SUPER_USERS
from ottla.security.access_rules import AccessRules
from ottla.security.authorizer import Authorizer
from ottla.security.super_users import super_users
from ottla.server.loop.slices import Steps
from ottla.server.security.audit.authorizer import AuditedAuthorizer
from ottla.server.security.audit.log import AuditLog


class Authorization:
    def __init__(self, settings: Config, audit: AuditLog | None = None) -> None:
        """`audit` is told of every decision, and of requests that change something."""
        self.audit = audit
        self._rules: AccessRules | None = None
        self._before_load: AccessRules | None = None
        if settings[AUTHORIZER_CLASS_NAME]:
            names = super_users(settings[SUPER_USERS])
            is_open = settings[ALLOW_EVERYONE_IF_NO_ACL_FOUND]
            self._rules = AccessRules(names, allow_everyone_if_no_acl_found=is_open)
            self._before_load = AccessRules(names)
            # The rules that replace them never have this version, so connections forget their decisions then.
            self._before_load.version = -1
        self._silent: Authorizer | None = self._rules
        # Made once, because a connection forgets its decisions when the authorizer is another object.
        self._asked = _asked(self._rules, audit)
        self._asked_before_load = _asked(self._before_load, audit)

    @property
    def authorizer(self) -> Authorizer | None:
        """The rules that requests are checked with; None if everything is allowed. They become another object when
        they are loaded, so they must not be kept.
        """
        return self._asked if self._before_load is None else self._asked_before_load

    @property
    def is_loaded(self) -> bool:
        """Whether requests are answered by the cluster's ACLs, or everything is allowed."""
        return self._before_load is None

    @property
    def silent(self) -> Authorizer | None:
        """The same rules without the audit log, for questions that are not about a request as a whole, such as
        whether a list shows a resource.
        """
        return self._silent if self._before_load is None else self._before_load

    def follow(self, changes: Iterable[Change]) -> None:
        """Take over changes of the metadata."""
        if self._rules is None:
            return
        for change in changes:
            if type(change) is AclChanged:
                if change.new is not None:
                    self._rules.add(change.new)
                elif change.old is not None:
                    self._rules.remove(change.old.id)

    def loading(self, state: ClusterState) -> Steps:
        """Take over all ACLs of the metadata, in slices."""
        if self._rules is not None:
            yield from self._rules.replacing(list(state.acls.values()))
            if state.features:  # otherwise nothing was read yet
                self.complete()

    def complete(self) -> None:
        """Answer by the ACLs from now on, because all committed ACLs that are known have been applied."""
        self._before_load = None


def _asked(rules: AccessRules | None, audit: AuditLog | None) -> Authorizer | None:
    """Return what requests are checked with: the rules; with an audit log, their decisions are written to it."""
    return rules if rules is None or audit is None else AuditedAuthorizer(rules, audit)
