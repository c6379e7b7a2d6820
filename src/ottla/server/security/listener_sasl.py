"""ListenerSasl: the SASL mechanisms of one listener, and the conversation of each new connection.

Settings are taken as a whole: if those of one mechanism cannot be used, all mechanisms stay as they are. When a node
starts there is nothing to keep but what the properties file says, whose users may have been removed since: then a
mechanism whose settings of the metadata cannot be used is not served.
"""

from __future__ import annotations

import logging

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.node_config import NodeConfig
from ottla.model.settings.network import CONNECTION_FAILED_AUTHENTICATION_DELAY_MS
from ottla.model.settings.sasl import SASL_SERVER_MAX_RECEIVE_SIZE
from ottla.server.loop.runtime import Runtime
from ottla.server.security.authentication import Authentication
from ottla.server.security.credentials import Credentials
from ottla.server.security.sasl_maker import SaslMaker, ServedSasl

log = logging.getLogger(__name__)


class ListenerSasl:
    def __init__(self, listener: str, node: NodeConfig, runtime: Runtime, credentials: Credentials) -> None:
        """If a mechanism is not known, or lacks what it needs, `check` says so."""
        self._listener = listener
        self._runtime = runtime
        self._followed = node  # the newest settings, whether they can be used or not
        self._maker = SaslMaker(listener, runtime, credentials)
        self._now, problem = self._maker.parts(node, None)
        self._was_usable = problem is None
        self._problem = "" if problem is None else problem.text  # why the newest settings cannot be used, as logged
        if problem is None:
            self._use(self._now)

    def is_behind(self, node: NodeConfig) -> bool:
        """Return whether the settings are to be tried: they are new, or could not be used."""
        return node is not self._followed or bool(self._problem)

    def check(self) -> None:
        """Raise INVALID_CONFIG if no settings could be used so far."""
        if not self._was_usable:
            raise ApiError(ErrorCode.INVALID_CONFIG, self._problem)

    def check_change(self, present: NodeConfig, new: NodeConfig) -> None:
        """Raise INVALID_REQUEST unless the listener may get these settings; a problem that it has already is no reason.
        It reads files, so a worker does it.
        """
        _, problem = self._maker.parts(new, self._now.oauth)
        if problem is not None:
            _, known = self._maker.parts(present, self._now.oauth)
            if known is None or known.text != problem.text:
                raise ApiError(ErrorCode.INVALID_REQUEST, problem.text)

    def follow(self, node: NodeConfig) -> None:
        """Take settings that may have changed, all of them or none; it reads files, so a worker does it."""
        self._followed = node
        made, problem = self._maker.parts(node, self._now.oauth)
        if problem is None:
            self._use(made)
        else:
            if self._is_new(problem):
                log.error("listener %s keeps its old SASL settings: %s", self._listener, problem.text)

    def take_over(self, node: NodeConfig) -> None:
        """Take the settings of the metadata when the node starts: what cannot be used is not served, so that nobody
        gets in whom only the properties file knows. It reads files, so a worker does it.
        """
        self._followed = node
        made, problem = self._maker.parts(node, self._now.oauth)
        if problem is None:
            self._use(made)
        elif self._was_usable:
            self._now = made
            served = ", ".join(made.mechanisms) or "none"
            if self._is_new(problem):
                log.error("listener %s serves of its SASL mechanisms %s: %s", self._listener, served, problem.text)
        else:
            self._problem = problem.text

    def refresh(self) -> None:
        """Look after what comes from outside (keys of identity providers); called from time to time."""
        if self._now.oauth is not None:
            self._now.oauth.refresh()

    def new_authentication(self) -> Authentication:
        """Return the conversation of a new connection."""
        config = self._now.config
        return Authentication(
            lambda: self._now.mechanisms,
            failure_delay_ms=config[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS],
            max_message_bytes=config[SASL_SERVER_MAX_RECEIVE_SIZE],
            now_ms=self._runtime.now_ms,
        )

    def _use(self, made: ServedSasl) -> None:
        self._now, self._problem, self._was_usable = made, "", True
        if made.oauth is not None:
            made.oauth.warn()

    def _is_new(self, problem: ApiError) -> bool:
        """Keep why the newest settings cannot be used; return whether it is to be logged, which is done once."""
        known, self._problem = self._problem, problem.text
        return known != problem.text
