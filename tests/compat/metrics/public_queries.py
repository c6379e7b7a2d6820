"""What public dashboards for the JMX exporter ask, in our own words: for rules like Strimzi's and kafka-2_0_0.yml.

Queries are what panels of that kind draw, without their variables. What has no meaning here is named with the reason.
"""

from __future__ import annotations

_TOPIC = "kafka_server_brokertopicmetrics_"
_MANAGER = "kafka_server_replicamanager_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_REQUEST = "kafka_network_requestmetrics_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_RAFT = "kafka_server_raftmetrics_"


def _rate(name: str, by: str = "topic") -> str:
    return f"sum by ({by}) (rate({name}[10s]))"


def _time(kind: str, request: str) -> str:
    return f'{_REQUEST}{kind}{{request="{request}",quantile="0.99"}}'


QUERIES = {
    "brokers that are scraped": f"count({_MANAGER}leadercount)",
    "active controllers": f"sum({_CONTROLLER}activecontrollercount)",
    "offline partitions": f"sum({_CONTROLLER}offlinepartitionscount)",
    "partitions of the cluster": f"max({_CONTROLLER}globalpartitioncount)",
    "topics of the cluster": f"max({_CONTROLLER}globaltopiccount)",
    "replicas that are not the preferred leader": f"max({_CONTROLLER}preferredreplicaimbalancecount)",
    "unclean elections": "sum(rate(kafka_controller_controllerstats_uncleanleaderelections_total[10s]))",
    "partitions": f"sum by (instance) ({_MANAGER}partitioncount)",
    "leaders": f"sum by (instance) ({_MANAGER}leadercount)",
    "under-replicated partitions": f"sum({_MANAGER}underreplicatedpartitions)",
    "partitions at their minimum": 'sum(kafka_cluster_partition_atminisr{topic!=""})',
    "partitions under their minimum": 'sum(kafka_cluster_partition_underminisr{topic!=""})',
    "under-replicated partitions by topic": "sum by (topic) (kafka_cluster_partition_underreplicated)",
    "replicas by topic": "sum by (topic) (kafka_cluster_partition_replicascount)",
    "in-sync replicas by topic": "sum by (topic) (kafka_cluster_partition_insyncreplicascount)",
    "offline replicas": f"sum({_MANAGER}offlinereplicacount)",
    "replicas that leave": f"sum(rate({_MANAGER}isrshrinks_total[10s]))",
    "replicas that join": f"sum(rate({_MANAGER}isrexpands_total[10s]))",
    "lag of followers": "max(kafka_server_replicafetchermanager_maxlag)",
    "messages in": _rate(f'{_TOPIC}messagesin_total{{topic!=""}}'),
    "bytes in": _rate(f'{_TOPIC}bytesin_total{{topic!=""}}'),
    "bytes out": _rate(f'{_TOPIC}bytesout_total{{topic!=""}}'),
    "produce requests": _rate(f'{_TOPIC}totalproducerequests_total{{topic!=""}}'),
    "fetch requests": _rate(f'{_TOPIC}totalfetchrequests_total{{topic!=""}}'),
    "failed produce requests": _rate(f'{_TOPIC}failedproducerequests_total{{topic!=""}}'),
    "failed fetch requests": _rate(f'{_TOPIC}failedfetchrequests_total{{topic!=""}}'),
    "size of logs": "sum by (topic) (kafka_log_log_size)",
    "segments": "sum by (topic) (kafka_log_log_numlogsegments)",
    "ends of logs": "sum by (topic) (kafka_log_log_logendoffset)",
    "offline directories": "sum(kafka_log_logmanager_offlinelogdirectorycount)",
    "syncs": "sum(rate(kafka_log_logflushstats_logflushrateandtimems_count[10s]))",
    "requests by API": _rate(f"{_REQUEST}requests_total", "request"),
    "errors by API": _rate(f'{_REQUEST}errors_total{{error!="NONE"}}', "request, error"),
    "requests without errors": _rate(f'{_REQUEST}errors_total{{error="NONE"}}', "request"),
    "total time of Produce": _time("totaltimems", "Produce"),
    "queue time of Produce": _time("requestqueuetimems", "Produce"),
    "local time of Produce": _time("localtimems", "Produce"),
    "remote time of Produce": _time("remotetimems", "Produce"),
    "answer queue time of Produce": _time("responsequeuetimems", "Produce"),
    "send time of Produce": _time("responsesendtimems", "Produce"),
    "total time of consumers' fetches": _time("totaltimems", "FetchConsumer"),
    "send time of consumers' fetches": _time("responsesendtimems", "FetchConsumer"),
    "mean total time": f"rate({_REQUEST}totaltimems_sum[10s]) / rate({_REQUEST}totaltimems_count[10s])",
    "idle time of handlers": "avg(kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent)",
    "idle time of the network": "avg(kafka_network_socketserver_networkprocessoravgidle_percent)",
    "connections": "sum by (listener) (kafka_server_socket_server_metrics_connection_count)",
    "disk reads": "sum(irate(kafka_server_kafkaserver_linux_disk_read_bytes[10s]))",
    "disk writes": "sum(irate(kafka_server_kafkaserver_linux_disk_write_bytes[10s]))",
    "CPU": "sum by (instance) (rate(process_cpu_seconds_total[10s]))",
    "memory": "sum by (instance) (process_resident_memory_bytes)",
    "open files": "sum by (instance) (process_open_fds)",
    "groups": f"sum({_GROUPS}numgroups)",
    "stable groups": f"sum({_GROUPS}numgroupsstable)",
    "empty groups": f"sum({_GROUPS}numgroupsempty)",
    "groups that rebalance": f"sum({_GROUPS}numgroupspreparingrebalance + {_GROUPS}numgroupscompletingrebalance)",
    "dead groups": f"sum({_GROUPS}numgroupsdead)",
    "fetch sessions": "sum(kafka_server_fetchsessioncache_numincrementalfetchsessions)",
    "leader of the quorum": f"max({_RAFT}current_leader)",
    "epoch of the quorum": f"max({_RAFT}current_epoch)",
    "states in the quorum": f"count by (current_state) ({_RAFT}current_state)",
    "high watermark of the quorum": f"max({_RAFT}high_watermark)",
    "end of the metadata": f"{_RAFT}log_end_offset",
    "voters": f"max({_RAFT}number_of_voters)",
    "applied metadata": "max(kafka_server_brokermetadatametrics_last_applied_record_offset)",
}

# Queries that only a cluster answers.
OF_CLUSTERS = {"total time of followers' fetches": _time("totaltimems", "FetchFollower")}

# Names that such dashboards use, too, by their beginnings, and why nothing is told by them.
NOT_HERE = {
    "jvm_": "there is no JVM; the memory of the process and Python's garbage collector are told",
    "java_lang_": "there is no JVM",
    "kafka_server_sessionexpirelistener_": "there is no ZooKeeper",
    "zookeeper_": "there is no ZooKeeper",
    "kafka_controller_controllereventmanager_": "the controller has no queue of events of its own",
    "kafka_network_requestchannel_": "there is no queue before the handlers: ottla_event_loop_delay_seconds",
    "kafka_server_delayedoperationpurgatory_": "what waits is told for all kinds together: ottla_waiting_requests",
    "kafka_server_socket_server_metrics_connection_creation_rate": "connections are counted while they are open",
    "kafka_server_raftchannelmetrics_": "requests of the quorum are told with all others, by API",
    "kafka_server_raftmetrics_commit_latency_avg": "no mean is kept: ottla_metadata_lag_records",
    "kafka_server_raftmetrics_election_latency_avg": "no mean is kept: ottla_quorum_leader_changes_total",
    "kafka_consumergroup_": "of another exporter: the lag is told as ottla_group_lag_records",
    "kafka_topic_": "of another exporter",
    "kubelet_volume_stats_": "of Kubernetes: ottla_disk_free_bytes",
    "container_": "of Kubernetes",
}
