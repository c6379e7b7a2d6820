"""Which worker runs which file, and in which order: the longest first, so that all workers end together.

xdist's own order (most tests first) leaves the slow files, which have few tests, to the end.
"""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK = "spark"

# Seconds on two cores, roughly; files of less than half a minute need no line. A wrong figure only costs time.
SECONDS = {
    SPARK: 600,
    "tests/server/quorum/test_kafka_metadata.py": 75,
    "tests/compat/test_client_security.py": 75,
    "tests/client/producer/test_transaction_brokers.py": 70,
    "tests/compat/groups/test_share_clients.py": 65,
    "tests/client/consumer/test_consumer_groups.py": 65,
    "tests/client/test_failover.py": 65,
    "tests/cli/test_bad_inputs.py": 65,
    "tests/compat/test_clients.py": 60,
    "tests/compat/test_mixed_cluster.py": 60,
    "tests/faults/test_rolling.py": 60,
    "tests/compat/security/test_secure_mixed_cluster.py": 60,
    "tests/faults/test_chaos.py": 55,
    "tests/client/share/test_share_consumer.py": 50,
    "tests/compat/chromium/test_pages.py": 90,
    "tests/compat/metrics/test_alerts.py": 90,
    "tests/compat/chromium/test_actions.py": 50,
    "tests/compat/test_cluster_tools.py": 50,
    "tests/client/producer/test_transaction_pipeline.py": 45,
    "tests/compat/transactions/test_exactly_once.py": 45,
    "tests/compat/groups/test_groups_clients.py": 45,
    "tests/cli/cluster/test_removal.py": 45,
    "tests/server/api/guard/test_no_rights.py": 45,
    "tests/compat/security/test_secure_clients.py": 45,
    "tests/sim/topics/test_topics.py": 40,
    "tests/log/compaction/test_kafka_compaction.py": 40,
    "tests/log/test_kafka_files.py": 40,
    "tests/client/admin/test_admin_cluster.py": 40,
    "tests/client/consumer/test_consumer_mixed.py": 40,
    "tests/cli/cluster/test_kafka.py": 40,
    "tests/cli/cluster/test_up.py": 40,
    "tests/server/coordinators/test_cluster_coordinators_failover.py": 40,
    "tests/registry/test_service_killed.py": 40,
    "tests/columns/protobuf/test_encode.py": 40,
    "tests/sim/replicated/test_cluster_seeds.py": 35,
    "tests/sim/test_coordinated.py": 35,
    "tests/wire/test_java_crosscheck.py": 35,
    "tests/compat/groups/test_groups_restart.py": 35,
    "tests/compat/same_answer/test_replicas.py": 35,
    "tests/compat/groups/test_streams_groups.py": 35,
    "tests/compat/transactions/test_transactions_clients.py": 35,
    "tests/compat/groups/test_groups_tools.py": 35,
    "tests/cli/cluster/test_voters.py": 35,
    "tests/sim/replicated/test_cluster_mutations.py": 30,
    "tests/sim/test_mutations.py": 30,
    "tests/tier/stores/test_failing_clouds.py": 30,
    "tests/tier/stores/test_port.py": 30,
    "tests/sim/test_transaction_crashes.py": 30,
    "tests/client/blocking/test_blocking.py": 30,
    "tests/server/quorum/test_three_nodes.py": 30,
    "tests/cli/nodes/test_nodes.py": 30,
    "tests/stalls/test_guard.py": 30,
}


class LongestFirst(LoadFileScheduling):
    """Gives each file to one worker, and all files with Spark to the same worker: two Sparks at once would be too slow
    on two cores.

    Groups (`xdist_group`) would do the same, but xdist 3.8 cannot pass them on under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith("tests/spark/") else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = max(self.workqueue, key=lambda scope: (SECONDS.get(scope, 0), len(self.workqueue[scope])))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
