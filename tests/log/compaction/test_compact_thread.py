"""Compaction in a worker thread, as the node runs it, while the loop's thread appends, reads and rolls."""

import threading
from pathlib import Path
from typing import Any

from tests.log.compacting import Model, small

from ottla.log.compaction.compact import Cleaned
from ottla.server.ports.os_disk import OsDisk


def test_the_worker_and_the_loop_do_not_disturb_each_other(tmp_path: Path) -> None:
    disk: Any = OsDisk(str(tmp_path), open_files_max=4)  # so few that descriptors change hands all the time
    model = Model(disk=disk, config=small(segment_bytes=4_000))
    for number in range(200):
        model.append([(b"k%d" % (number % 40), b"v%d" % number)], producer_id=9)
    for _ in range(2):
        compaction = model.compaction()
        cleaned: list[Cleaned] = []
        failures: list[BaseException] = []

        def work(compaction: Any = compaction, cleaned: list[Cleaned] = cleaned, failures: Any = failures) -> None:
            try:
                for _ in compaction.build_map():
                    pass
                for group in compaction.groups():
                    steps = compaction.rewrite(group)
                    while True:
                        try:
                            next(steps)
                        except StopIteration as end:
                            cleaned.append(end.value)
                            break
            except BaseException as error:
                failures.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        number = 0
        while worker.is_alive():
            model.append([(b"k%d" % (number % 40), b"during %d" % number)], producer_id=9)
            assert model.log.read(number % model.log.next_offset, 5_000, max_offset=model.log.next_offset).slice
            number += 1
        worker.join()
        assert failures == []
        assert cleaned
        for group in cleaned:
            assert compaction.swap(group, model.now_ms)
        model.clean_offset = compaction.end_offset
        model.log.remove_deleted(model.now_ms)
        model.check_clean()
    model.log.close()
