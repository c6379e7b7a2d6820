"""What a node must refuse to start with: settings that contradict each other, and promises it cannot keep yet.

A listener that was configured for TLS or SASL must never be served in plain text, and a node that was told to join
others must not begin alone. All problems are told at once, since somebody is going to edit a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ottla.model.config import Config
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.start_checks import start_problems
from ottla.server.configs import Configs
from ottla.server.listener import Endpoint
from ottla.server.listeners import advertised, security_protocols

BOTH_ROLES = {"broker", "controller"}


def check_start(configs: Configs, endpoints: Sequence[Endpoint]) -> None:
    """Raises INVALID_CONFIG with everything that stands in the way."""
    settings = configs.broker
    advertised(settings)  # raises if it cannot be read
    problems = [*start_problems(configs.node), *_security(settings, endpoints), *_quorum(settings, configs.node_id)]
    if problems:
        raise ApiError(ErrorCode.INVALID_CONFIG, "; ".join(problems))


def _security(settings: Config, endpoints: Sequence[Endpoint]) -> Iterator[str]:
    protocols = security_protocols(settings)
    for endpoint in endpoints:
        protocol = protocols.get(endpoint.name)
        if protocol is None:
            yield f"listener {endpoint.name} is not in listener.security.protocol.map"
        elif protocol != "PLAINTEXT":
            yield f"listener {endpoint.name} wants {protocol}, which is not served yet (only PLAINTEXT is)"
    if settings.get("authorizer.class.name"):
        yield "authorizer.class.name is set, but access control is not there yet"


def _quorum(settings: Config, node_id: int) -> Iterator[str]:
    roles = set(settings.get("process.roles"))
    if roles != BOTH_ROLES:
        yield f"process.roles is {','.join(sorted(roles))}, but a node is broker and controller in one for now"
    voters = settings.get("controller.quorum.voters") or ()
    others = [voter for voter in voters if voter.partition("@")[0] != str(node_id)]
    if others:
        yield f"controller.quorum.voters names other nodes ({','.join(others)}), but a node is alone for now"
