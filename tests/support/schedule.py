"""Which worker runs which file, and in which order: the longest first, so that both workers end together.

xdist's own order (most tests first) leaves the slow files, which have few tests, to the end.
"""

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK = "spark"

# Seconds on two cores, roughly; files of less than half a minute need no line. A wrong figure costs time, nothing else.
SECONDS = {
    SPARK: 900,
}


class LongestFirst(LoadFileScheduling):
    """One worker per file, and one for all of Spark: two of them at once starve each other on two cores.

    Groups (`xdist_group`) would say the same, but xdist 3.8 cannot pass them on under pytest 9.2.
    """

    def _split_scope(self, nodeid: str) -> str:
        return SPARK if nodeid.startswith("tests/spark/") else str(super()._split_scope(nodeid))

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = max(self.workqueue, key=lambda scope: (SECONDS.get(scope, 0), len(self.workqueue[scope])))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)
