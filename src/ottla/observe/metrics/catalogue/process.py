"""The process, as every Prometheus client tells it, and this endpoint itself."""

from ottla.observe.metrics.declaration import Area

process = Area("Process", "Names by Prometheus' convention. Several nodes in one process tell the same.")

CPU = process.counter("process_cpu_seconds_total", "CPU time of the process.", unit="seconds")
RESIDENT = process.gauge("process_resident_memory_bytes", "Memory of the process in RAM.", unit="bytes")
VIRTUAL = process.gauge("process_virtual_memory_bytes", "Address space of the process.", unit="bytes")
OPEN_FILES = process.gauge("process_open_fds", "Open file descriptors.")
MAX_FILES = process.gauge("process_max_fds", "Descriptors that the process may open.")
DISK_READ = process.gauge(
    "kafka_server_kafkaserver_linux_disk_read_bytes",
    "Bytes that the process has had read from disks since its start; on Linux.",
    unit="bytes",
    mbean="kafka.server:type=KafkaServer,name=linux-disk-read-bytes",
)
DISK_WRITTEN = process.gauge(
    "kafka_server_kafkaserver_linux_disk_write_bytes",
    "Bytes that the process has had written to disks since its start; on Linux.",
    unit="bytes",
    mbean="kafka.server:type=KafkaServer,name=linux-disk-write-bytes",
)
STARTED = process.gauge("process_start_time_seconds", "When the process began, since 1970.", unit="seconds")
THREADS = process.gauge("ottla_process_threads", "Threads of the process.")
COLLECTIONS = process.counter("ottla_gc_collections_total", "Runs of Python's garbage collector.", "generation")
BUILD = process.gauge(
    "ottla_build_info", "1; the versions of this node are its labels.", "version", "python", "node", "cluster"
)
UPTIME = process.gauge("ottla_uptime_seconds", "Time since the node began to start.", unit="seconds")
SCRAPES = process.counter("ottla_metrics_scrapes_total", "Scrapes that were collected.")
SAMPLES_LEFT_OUT = process.gauge("ottla_metrics_samples_left_out", "Samples of this scrape that were too many.")
