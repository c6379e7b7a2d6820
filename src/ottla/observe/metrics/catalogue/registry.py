"""The schema registry, a process of its own."""

from ottla.observe.metrics.declaration import Area

registry = Area(
    "Schema registry",
    "Told by each registry process at its own `/metrics`, to those who may describe the cluster. A request that a "
    "follower hands to the leader counts in both. Times are those of the last one to two minutes.",
)

REQUESTS = registry.counter(
    "ottla_registry_requests_total", "Requests that were answered, by the pattern of the path.", "method", "route"
)
ERRORS = registry.counter(
    "ottla_registry_errors_total", "Answers with an HTTP status of 400 and above.", "method", "route", "status"
)
TIME = registry.summary(
    "ottla_registry_request_seconds",
    "Time from the first byte of a request until its answer was ready.",
    "method",
    "route",
    unit="seconds",
)
SUBJECTS = registry.gauge("ottla_registry_subjects", "Subjects that this instance has read.")
SCHEMAS = registry.gauge("ottla_registry_schemas", "Versions of all subjects, deleted ones included.")
