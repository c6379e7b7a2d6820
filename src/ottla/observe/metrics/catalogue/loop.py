"""The event loop, which handles all requests of a node."""

from ottla.observe.metrics.declaration import Area

loop = Area(
    "Event loop", "One thread handles all requests: when it has no idle time left, the node has reached its limit."
)

IDLE = loop.gauge(
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "The share of time, from 0 to 1, in which the event loop's thread neither used a CPU nor waited for one since the "
    "last scrape.",
    mbean="kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
)
NETWORK_IDLE = loop.gauge(
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "The same share: the thread that handles requests reads and sends them, too.",
    mbean="kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
)
DELAY = loop.summary(
    "ottla_event_loop_delay_seconds",
    "How much later than asked the event loop called back: what a request waits before anybody looks at it.",
    unit="seconds",
)
STALLS = loop.counter(
    "ottla_event_loop_stalls_total", "Callbacks that held the event loop longer than ottla.stall.limit.ms."
)
STALLED = loop.counter("ottla_event_loop_stalled_seconds_total", "The time that these took.", unit="seconds")
