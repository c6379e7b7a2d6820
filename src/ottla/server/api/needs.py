"""Needs: the rights that an API needs, declared beside its handler (`@handles(…, needs=…)`).

    @handles(HeartbeatRequest, needs=Needs((on_group(READ),)))
    @handles(ListGroupsRequest, needs=Needs(sees=(Seen(on_group(DESCRIBE), "groups", unless=on_cluster(DESCRIBE)),)))

Declarations are data. If the node has an authorizer, `server/api/guard/` wraps the handler in what they say; if not,
the handler is called as it is. A request is checked in this order:

1. `rights` for the whole request: without one of them it is refused with the error of that resource;
2. `items` of a list in the request: the handler gets those that are allowed, the guard answers the others;
3. `guard`: a check that does not fit these forms, in the module of that name in `server/api/guard/`;
4. `sees`, `hides` and `operations`: what the client may not see is taken out of the handler's response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import ResourceType
from ottla.security.acls import AclOperation, AclResourceType
from ottla.wire.message import Response

ERRORS = {
    AclResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    AclResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    AclResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    AclResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    AclResourceType.DELEGATION_TOKEN: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    AclResourceType.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}


# Takes a request and yields what it names, in words.
Names: TypeAlias = Callable[[Any], Iterator[str]]


class Right(NamedTuple):
    """An operation on a resource. `field` is the field that has the resource's name, or a list of names which all have
    to be allowed; it is empty for the cluster, and for items that are names themselves.
    """

    operation: AclOperation
    resource: AclResourceType
    field: str = ""
    instead: AclOperation | None = None  # another operation on the same resource that is enough, too

    @property
    def error(self) -> ErrorCode:
        return ERRORS[self.resource]


def on_cluster(operation: AclOperation, instead: AclOperation | None = None) -> Right:
    return Right(operation, AclResourceType.CLUSTER, instead=instead)


def on_topic(operation: AclOperation, field: str = "name") -> Right:
    return Right(operation, AclResourceType.TOPIC, field)


def on_group(operation: AclOperation, field: str = "group_id") -> Right:
    return Right(operation, AclResourceType.GROUP, field)


def on_transaction(operation: AclOperation, field: str = "transactional_id") -> Right:
    return Right(operation, AclResourceType.TRANSACTIONAL_ID, field)


class CheckedItems(NamedTuple):
    """The items of a request that are checked one by one.

    `of` and `into` are the paths of the items and of their answers, as in `Portions`: the first list has the checked
    items, further ones are within them and get the same error. Where the innermost items are plain values, `into` ends
    with the field that repeats them: "groups:group_id".
    """

    right: Right | Callable[[Any], Right | None]  # a function takes an item; None: nothing is needed
    of: str
    into: str
    id: str = ""  # the field with the topic's id, where items may be named by id
    order: Literal["first", "last", "place"] = "last"  # where refused items are in the response
    unless: Right | None = None  # with this right on the whole, no item is checked
    # The same for requests of brokers to controllers: they have checked their clients. Not for requests in Envelopes.
    of_brokers: Right | None = None
    always_asks: bool = False  # whether the handler is asked even if no item is allowed
    explained: bool = False  # whether refused items have an error message
    refused: tuple[tuple[str, object], ...] = ()  # other fields of the answer for a refused item
    rights: tuple[Right, ...] = ()  # the rights that the function `right` may return

    def all_rights(self) -> list[Right]:
        rights = [self.right] if isinstance(self.right, Right) else list(self.rights)
        return rights + [right for right in (self.unless, self.of_brokers) if right is not None]


class Seen(NamedTuple):
    """A list in the response, perhaps within another one, with only those items that the client may see."""

    right: Right
    of: str
    unless: Right | None = None  # with this right everything is seen


class Hidden(NamedTuple):
    """Groups in a response that are replaced by an error if they have a topic that the client may not describe."""

    topics: tuple[str, ...]  # paths of topic names within a group
    text: str


class Operations(NamedTuple):
    """The bit sets of authorized operations in a response."""

    resource: AclResourceType
    of: str  # the list of resources in the response; empty: the response itself is about the cluster
    name: str  # the field with the resource's name
    field: str  # the field with the bits


# Described groups, of all kinds.
TOLD_OF_GROUPS = (Operations(AclResourceType.GROUP, "groups", "group_id", "authorized_operations"),)


class Needs(NamedTuple):
    """Everything that one API needs. `asks` names the further rights that the module `guard` asks for.

    An API that changes something declares what its requests name, for the audit log (`changes`), or why they have no
    line of their own there (`unnoted`).
    """

    rights: tuple[Right, ...] = ()
    items: CheckedItems | None = None
    sees: tuple[Seen, ...] = ()
    hides: Hidden | None = None
    operations: tuple[Operations, ...] = ()
    guard: str = ""
    asks: tuple[Right, ...] = ()
    on_controllers: tuple[Right, ...] | None = None  # the rights on listeners of controllers, if they differ
    # How a response refuses the whole request: with its own `error_code`; with an error for each item, if `mirror` has
    # paths as in `Items` ("of > into"); or as `refuse` builds it.
    mirror: str = ""
    explained: bool = False
    refused: tuple[tuple[str, object], ...] = ()  # other fields of such a response
    refuse: Callable[[Any, ApiError], Response] | None = None
    changes: Names | None = None
    unnoted: str = ""
    refuses: tuple[ErrorCode, ...] = ()  # errors with which the handler itself refuses who asks


# What the guard asks for where settings name a dead-letter topic (`server/api/guard/letter_topics.py`).
LETTER_TOPICS = (on_topic(AclOperation.WRITE), on_topic(AclOperation.CREATE), on_cluster(AclOperation.CREATE))

# For APIs that everybody may use.
NOTHING = Needs()


def configs_of(operation: AclOperation, of: str, into: str, *, loggers: bool = True) -> CheckedItems:
    """Return the items of a request about settings: the right depends on the type of resource. Other types have no
    settings, which the handler says; `loggers`: whether the request may be about them.
    """
    cluster = on_cluster(operation)
    rights = {
        ResourceType.TOPIC: on_topic(operation, "resource_name"),
        ResourceType.GROUP: on_group(operation, "resource_name"),
        ResourceType.BROKER: cluster,
        ResourceType.BROKER_LOGGER: cluster,
        ResourceType.CLIENT_METRICS: cluster,
    }
    if not loggers:
        del rights[ResourceType.BROKER_LOGGER]
    needed = tuple(dict.fromkeys(rights.values()))
    return CheckedItems(lambda each: rights.get(each.resource_type), of, into, explained=True, rights=needed)


def rights_of(needs: Needs) -> list[tuple[AclOperation, AclResourceType]]:
    """Return every operation on a type of resource that the API may ask for, for lists and tests."""
    rights = [*needs.rights, *(needs.on_controllers or ()), *needs.asks]
    if needs.items is not None:
        rights += needs.items.all_rights()
    for seen in needs.sees:
        rights += [seen.right] if seen.unless is None else [seen.right, seen.unless]
    if needs.hides is not None:
        rights.append(on_topic(AclOperation.DESCRIBE))
    found = [(right.operation, right.resource) for right in rights]
    found += [(right.instead, right.resource) for right in rights if right.instead is not None]
    return list(dict.fromkeys(found))
