"""The small text files beside the segments, in Kafka's formats; a crash leaves either the old content or the new.

In the root of a data directory: `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
`replication-offset-checkpoint` (high watermarks), `cleaner-offset-checkpoint`, `meta.properties`,
`.kafka_cleanshutdown`. In a partition: `partition.metadata` (`leader-epoch-checkpoint` is in `epochs`, which shares the
line format).

Rules: a missing file is empty; a damaged one raises `CheckpointError`, and the caller decides (offsets can be
recomputed by scanning from 0, identities cannot).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ottla.log.files.disk import Directory, Disk, read_all, replace_file
from ottla.model.ids import TopicPartition, uuid_bytes, uuid_text

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
# Ottla's own, in a partition's directory: the checkpoints of the data directory are about an older partition of the
# same name.
BEGUN_ANEW = "begun-anew"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

_VERSION = 0


class CheckpointError(Exception):
    """A checkpoint file cannot be parsed."""


def read_lines(directory: Directory, name: str) -> list[list[str]]:
    """Return the fields of each line of a checkpoint: version, number of lines, then the lines."""
    try:
        file = directory.open(name)
    except FileNotFoundError:
        return []
    try:
        lines = read_all(file).decode("utf-8", "replace").splitlines()
    finally:
        file.close()
    if not lines:
        return []
    path = f"{directory.path}/{name}"
    if lines[0].strip() != str(_VERSION):
        raise CheckpointError(f"{path}: unknown version {lines[0]!r}")
    try:
        count = int(lines[1])
    except (IndexError, ValueError):
        raise CheckpointError(f"{path}: the second line is not a number of entries") from None
    entries = [line.split() for line in lines[2:] if line]
    if len(entries) != count:
        raise CheckpointError(f"{path}: {count} entries announced, {len(entries)} found")
    return entries


def write_lines(directory: Directory, name: str, lines: Iterable[str], *, sync: bool = True) -> None:
    entries = list(lines)
    text = "".join(f"{line}\n" for line in [str(_VERSION), str(len(entries)), *entries])
    replace_file(directory, name, text.encode(), sync=sync)


def read_offsets(disk: Disk, name: str) -> dict[TopicPartition, int]:
    """Read one of the offset checkpoints of a data directory."""
    offsets = {}
    for fields in read_lines(Directory(disk, ""), name):
        try:
            topic, partition, offset = fields
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError:
            raise CheckpointError(f"{name}: malformed line {' '.join(fields)!r}") from None
    return offsets


def write_offsets(disk: Disk, name: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))
    write_lines(Directory(disk, ""), name, lines)


def read_partition_metadata(directory: Directory) -> bytes | None:
    """Return the topic id that a partition directory belongs to; None if the file is absent."""
    fields = _read_properties(directory, PARTITION_METADATA, separator=":")
    if fields is None:
        return None
    try:
        if int(fields["version"]) != _VERSION:
            raise CheckpointError(f"{directory.path}/{PARTITION_METADATA}: unknown version {fields['version']}")
        return uuid_bytes(fields["topic_id"])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{directory.path}/{PARTITION_METADATA} is malformed: {error}") from None


def write_partition_metadata(directory: Directory, topic_id: bytes, *, sync: bool = True) -> None:
    text = f"version: {_VERSION}\ntopic_id: {uuid_text(topic_id)}"
    replace_file(directory, PARTITION_METADATA, text.encode(), sync=sync)


def read_meta_properties(disk: Disk) -> dict[str, str] | None:
    """Read `meta.properties` (version, cluster.id, node.id, directory.id) of a data directory.

    None if the directory was never formatted.
    """
    return _read_properties(Directory(disk, ""), META_PROPERTIES, separator="=")


def write_meta_properties(disk: Disk, properties: Mapping[str, str]) -> None:
    text = "#\n" + "".join(f"{key}={value}\n" for key, value in sorted(properties.items()))
    replace_file(Directory(disk, ""), META_PROPERTIES, text.encode())


def _read_properties(directory: Directory, name: str, *, separator: str) -> dict[str, str] | None:
    try:
        file = directory.open(name)
    except FileNotFoundError:
        return None
    try:
        text = read_all(file).decode("utf-8", "replace")
    finally:
        file.close()
    properties = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith(("#", "!")):
            key, _, value = line.partition(separator)
            properties[key.strip()] = value.strip()
    return properties


def clean_shutdown_epoch(disk: Disk) -> int:
    """Return the broker epoch of the last clean shutdown (KIP-966); -1 if there was none, or it is not known."""
    try:
        file = disk.open(CLEAN_SHUTDOWN)
    except FileNotFoundError:
        return -1
    try:
        epoch = json.loads(read_all(file))["brokerEpoch"]
    except (ValueError, KeyError, TypeError):
        return -1
    finally:
        file.close()
    return epoch if isinstance(epoch, int) else -1


def take_clean_shutdown(disk: Disk) -> bool:
    """Return whether the last stop was clean.

    The file is removed at once: it must not count for the run that begins now.
    """
    if not disk.exists(CLEAN_SHUTDOWN):
        return False
    disk.remove(CLEAN_SHUTDOWN)
    disk.sync_directory("")
    return True


def write_clean_shutdown(disk: Disk, broker_epoch: int = -1) -> None:
    """Write the clean shutdown file, the very last write of a clean stop."""
    text = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    replace_file(Directory(disk, ""), CLEAN_SHUTDOWN, text.encode())
