"""BrokerRegistration (key 62): register a starting broker and give it its broker epoch."""

from __future__ import annotations

from ottla.cluster.commands.register_broker import RegisterBroker
from ottla.cluster.entities import Broker
from ottla.cluster.registration import endpoints_of, features_of
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_BROKER_EPOCH
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster
from ottla.server.quorum.active_controller import Decided
from ottla.wire.messages.cluster.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


def _refuse(_: BrokerRegistrationRequest, error: ApiError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error.code)


@handles(
    BrokerRegistrationRequest,
    needs=Needs((on_cluster(AclOperation.CLUSTER_ACTION),)),
    on="controller",
    few=True,
    refuse=_refuse,
)
def broker_registration(request: BrokerRegistrationRequest, context: Context) -> Decided[BrokerRegistrationResponse]:
    if request.cluster_id != context.cluster_id:
        return BrokerRegistrationResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    if request.is_migrating_zk_broker:
        return BrokerRegistrationResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
    broker = Broker(
        id=request.broker_id,
        epoch=NO_BROKER_EPOCH,
        incarnation_id=request.incarnation_id,
        endpoints=endpoints_of(request.listeners),
        features=features_of(request.features),
        rack=request.rack,
        fenced=True,
        directories=tuple(request.log_dirs),
        cordoned=None,  # reported with its first heartbeat
    )
    return context.member.controller.ask(
        RegisterBroker(broker, request.previous_broker_epoch),
        lambda epoch: BrokerRegistrationResponse(error_code=ErrorCode.NONE, broker_epoch=epoch),
    )
