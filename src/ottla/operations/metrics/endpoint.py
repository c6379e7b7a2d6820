"""Ask a node for its metrics, at the address that its setting `ottla.metrics.listener` tells.

An endpoint on loopback is asked on this machine, and believed if it names the node that was meant: the node may run on
another machine, and another one here. An endpoint with TLS is asked with the TLS settings and the user of the command.
"""

from __future__ import annotations

import base64
import http.client
import ssl
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

from ottla.client.errors import ClientError
from ottla.client.metadata import AdvertisedBroker
from ottla.client.security.secret import SecretMissing
from ottla.client.security.security import Security
from ottla.client.security.web import bounded_connection
from ottla.model.limits import METRICS_ANSWER_BYTES_MAX, METRICS_REQUEST_S
from ottla.model.settings.own import OTTLA_METRICS_LISTENER
from ottla.observe.metrics.catalogue.process import BUILD
from ottla.operations.addresses import metrics_url
from ottla.operations.metrics.samples import MetricSamples
from ottla.server.settings.metrics_listener import metrics_place

_CONNECT_S = 3.0
_ANYWHERE = ("0.0.0.0", "::")  # where a node listens on all its addresses
NO_LISTENER = f"it has no {OTTLA_METRICS_LISTENER.name}"


class NoMetricsError(Exception):
    """A node does not tell its metrics; the message says why."""


class ToldMetrics(NamedTuple):
    """The metrics of a node as it told them, and the same read."""

    text: str
    samples: MetricSamples


def metrics_of(broker: AdvertisedBroker, settings: Mapping[str, str], security: Security | None) -> ToldMetrics:
    """Return the metrics of a node of which these settings are known. Raises NoMetricsError.

    It waits for the node, and reads an answer of up to METRICS_ANSWER_BYTES_MAX bytes: call it in a thread.
    """
    url = _url_of(broker, settings)
    text = _answer(url, security)
    samples = MetricSamples(text)
    told = {labels.get("node") for labels, _ in samples.of(BUILD.name)}
    if str(broker.node_id) not in told:
        raise NoMetricsError(f"{url} tells the metrics of another node: ask on the machine of node {broker.node_id}")
    return ToldMetrics(text, samples)


def _url_of(broker: AdvertisedBroker, settings: Mapping[str, str]) -> str:
    listener = settings.get(OTTLA_METRICS_LISTENER.name)
    if not listener:
        raise NoMetricsError(NO_LISTENER)
    try:
        place = metrics_place(listener)
    except ValueError as error:
        raise NoMetricsError(str(error)) from None
    if place.port == 0:
        raise NoMetricsError(f"{OTTLA_METRICS_LISTENER.name} names no port: any free one was taken")
    return metrics_url(broker.host if place.host in _ANYWHERE else place.host, place.port, place.has_tls)


def _answer(url: str, security: Security | None) -> str:
    parts = urlsplit(url)
    try:
        headers = _who(security) if parts.scheme == "https" else {}
        tls = None if security is None else security.tls
        with bounded_connection(parts, METRICS_REQUEST_S, tls, connect_s=_CONNECT_S) as connection:
            connection.request("GET", parts.path, headers=headers)
            answer = connection.getresponse()
            data = answer.read(METRICS_ANSWER_BYTES_MAX + 1)
    except (OSError, ssl.SSLError, http.client.HTTPException, ClientError, SecretMissing) as error:
        raise NoMetricsError(f"{url} does not answer: {error}") from None
    if answer.status != HTTPStatus.OK:
        raise NoMetricsError(f"{url} answers {answer.status} {answer.reason}")
    if len(data) > METRICS_ANSWER_BYTES_MAX:
        raise NoMetricsError(f"{url} answers more than {METRICS_ANSWER_BYTES_MAX} bytes")
    return data.decode("utf-8", "replace")


def _who(security: Security | None) -> dict[str, str]:
    sasl = None if security is None else security.sasl
    if sasl is None or sasl.password is None:
        return {}
    login = f"{sasl.username}:{sasl.password.reveal()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}
