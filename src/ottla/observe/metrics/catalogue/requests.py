"""Requests of clients and other nodes, by API."""

from ottla.observe.metrics.declaration import Area

requests = Area(
    "Requests",
    "Times are those of the last one to two minutes, split as Kafka splits them. There is no queue before the handlers "
    "here: a request waits in the buffer of its connection, behind those that came with it, and waiting for the event "
    "loop is in `ottla_event_loop_delay_seconds`. Waiting before handling and sending takes less than a millisecond as "
    "a rule, and then counts as 0; Kafka, too, rounds these times to milliseconds. The total time here is the local "
    "and the remote one; add the others if they are not 0. Requests of Fetch are told three times, as in Kafka: all as "
    "`Fetch`, those of consumers as `FetchConsumer`, those of followers as `FetchFollower`. Refusals by the authorizer "
    "are errors, `TOPIC_AUTHORIZATION_FAILED` say.",
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
    "Error codes in answers, also those of single partitions and other items; NONE counts requests without any.",
    "request",
    "error",
    mbean="kafka.network:type=RequestMetrics,name=ErrorsPerSec,request=*,error=*",
)
QUEUE_TIME = requests.summary(
    "kafka_network_requestmetrics_requestqueuetimems",
    "Time from reading a request until decoding it.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=RequestQueueTimeMs,request=*",
)
LOCAL_TIME = requests.summary(
    "kafka_network_requestmetrics_localtimems",
    "Time from decoding a request until its handler returned, and, if it has not to wait, its answer was encoded.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=LocalTimeMs,request=*",
)
REMOTE_TIME = requests.summary(
    "kafka_network_requestmetrics_remotetimems",
    "Time from then until its answer was ready: waiting for replicas, records, disks or other nodes.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=RemoteTimeMs,request=*",
)
ANSWER_QUEUE_TIME = requests.summary(
    "kafka_network_requestmetrics_responsequeuetimems",
    "Time that an answer was ready and waited for those before it on its connection.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=ResponseQueueTimeMs,request=*",
)
SEND_TIME = requests.summary(
    "kafka_network_requestmetrics_responsesendtimems",
    "Time from then until the socket had taken the last byte; 0 if it took all at once.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=ResponseSendTimeMs,request=*",
)
TOTAL_TIME = requests.summary(
    "kafka_network_requestmetrics_totaltimems",
    "Time from decoding a request until its answer was ready to be sent, with all waits.",
    "request",
    unit="milliseconds",
    mbean="kafka.network:type=RequestMetrics,name=TotalTimeMs,request=*",
)
