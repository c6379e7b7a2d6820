"""A warning at start: the node's own user, with whom brokers log in to each other, is not known to the cluster.

With SCRAM the users are in the metadata, and the JAAS line only says who the node is. A node that formats itself knows
no user at all, so nobody can log in, not even to add users.
"""

from __future__ import annotations

import logging

from ottla.cluster.state import ClusterState
from ottla.model.node_config import NodeConfig
from ottla.model.settings.sasl import SASL_MECHANISM_INTER_BROKER_PROTOCOL
from ottla.security.sasl.jaas import InvalidJaas, parse_jaas_line
from ottla.security.sasl.scram.credentials import SCRAM_MECHANISMS
from ottla.server.settings.endpoints import inter_broker_listener
from ottla.server.settings.listener_config import jaas_line, login_mechanism

log = logging.getLogger(__name__)


def warn_of_missing_user(node: NodeConfig, state: ClusterState) -> None:
    """Log one line if the node logs in with SCRAM as a user whom the metadata does not have."""
    listener = inter_broker_listener(node.broker)
    mechanism = login_mechanism(node, listener, SASL_MECHANISM_INTER_BROKER_PROTOCOL)
    known = SCRAM_MECHANISMS.get(mechanism)
    if known is None:
        return
    line = jaas_line(node, listener, mechanism)
    try:
        options = parse_jaas_line(line).options if line else {}
    except InvalidJaas:
        return  # the listener has said so
    user = options.get("username", "")
    if not user or options.get("tokenauth", "").lower() == "true" or (user, known) in state.scram:
        return
    if state.scram:
        advice = (
            "add it, as another user who may, with the password of the node's sasl.jaas.config in a file (after `ottla "
            f"up --secure`: {user}.password in the folder secure): ottla user add {user} --password-file FILE "
            f"--mechanism {mechanism}"
        )
    else:
        advice = (
            "there is no user at all, so nobody can log in with SCRAM: stop the node, and format an empty data "
            f"directory with: ottla format server.properties --add-scram @FILE, which has the line "
            f"{mechanism}=[name={user},password=...]"
        )
    log.warning(
        "this node logs in to brokers with %s as %s, whom the cluster does not know; %s", mechanism, user, advice
    )
