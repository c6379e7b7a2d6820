"""Control records: records that brokers and controllers write between the records of clients.

The record's key is a `ControlRecordTypeSchema` behind its version as an int16; the value is one of the others. All
values but the transaction marker belong to the metadata log.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import NO_ID, Int16, Int32, Int64, String, UInt16, Uuid


class ControlRecordTypeSchema(Data, versions="0"):
    """The kind of control record: 0 abort, 1 commit, 2 leader change, 3-4 snapshot header and footer, 5-6 quorum."""

    type: Int16


class EndTxnMarker(Data, versions="0"):
    """Ends a transaction."""

    coordinator_epoch: Int32


class LeaderChangeMessage(Data, versions="0-1", flexible="0+"):
    """Begins the epoch of a new leader of the metadata quorum.

    v1   + voter_directory_id
    """

    version: Int16
    leader_id: Int32

    class Voter(Struct):
        voter_id: Int32
        voter_directory_id: Uuid = on("1+", NO_ID)

    voters: list[Voter]
    granting_voters: list[Voter]


class SnapshotHeaderRecord(Data, versions="0", flexible="0+"):
    """Begins a snapshot."""

    version: Int16
    last_contained_log_timestamp: Int64


class SnapshotFooterRecord(Data, versions="0", flexible="0+"):
    """Ends a snapshot, which is then complete."""

    version: Int16


class KRaftVersionRecord(Data, versions="0", flexible="0+"):
    """The KRaft version in use from here on."""

    version: Int16
    kraft_version: Int16


class VotersRecord(Data, versions="0", flexible="0+"):
    """The voters of the metadata quorum from here on."""

    version: Int16

    class Voter(Struct):
        voter_id: Int32
        voter_directory_id: Uuid

        class Endpoint(Struct):
            name: String
            host: String
            port: UInt16

        endpoints: list[Endpoint]

        class KRaftVersionFeature(Struct):
            min_supported_version: Int16
            max_supported_version: Int16

        kraft_version_feature: KRaftVersionFeature

    voters: list[Voter]
