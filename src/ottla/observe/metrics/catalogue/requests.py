"""Requests of clients and other nodes, by API."""

from ottla.observe.metrics.declaration import Area

requests = Area(
    "Requests",
    "Times are those of the last one to two minutes. There is no queue before the handlers here, so Kafka's times in "
    "queues have no counterpart: waiting for the event loop is in `ottla_event_loop_delay_seconds`. Kafka's "
    "RemoteTimeMs (waiting for replicas, records or other nodes) is the total time without the local time; the time of "
    "sending is not measured, because sockets take answers while further requests are handled. Refusals by the "
    "authorizer are errors, `TOPIC_AUTHORIZATION_FAILED` say.",
)

REQUESTS = requests.counter(
    "kafka_network_requestmetrics_requests_total",
    "Requests that were handled.",
    "request",
    "version",
    mbean="kafka.network:type=RequestMetrics,name=RequestsPerSec,request=*,version=*",
)
ERRORS = requests.counter(
    "kafka_network_requestmetrics_errors_total",
    "Error codes in answers, also those of single partitions and other items; NONE counts answers without any.",
    "request",
    "error",
    mbean="kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=*,error=*",
)
LOCAL_TIME = requests.summary(
    "kafka_network_requestmetrics_localtimems",
    "Time from decoding a request until its handler returned, and, if it has not to wait, its answer was encoded.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=LocalTimeMs,request=*",
)
TOTAL_TIME = requests.summary(
    "kafka_network_requestmetrics_totaltimems",
    "Time from decoding a request until its answer was ready to be sent, with all waits.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=TotalTimeMs,request=*",
)
