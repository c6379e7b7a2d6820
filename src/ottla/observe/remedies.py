"""What to do about each warning and error in the log of a node, a registry, a client or a pipeline.

They are found by the module and the template of the line.

`logs.py` adds it to the line, docs/logs.md lists it. A test finds lines without a remedy, and remedies without a line.
Where the line itself says what to do, because that depends on what happened, the remedy is `SAID`.
"""

import logging
import re
from collections.abc import Mapping
from typing import Final

SAID: Final = ""
DEFECT: Final = "this is a defect of Ottla; `ottla support-bundle` packs up what a report needs"
_DISK: Final = "make room on the disk, or replace it (`ottla doctor --data DIR`), and restart the node"
_ROOM: Final = "make room on the disk or mend its rights; it is tried again"
_NODES: Final = "nothing if it stops; else start the other nodes (`ottla cluster status`)"
_CONTROLLERS: Final = "start a majority of the controllers (`ottla cluster quorum`); it is tried again"
_DESCRIPTORS: Final = "raise the limit of open files of the process (`ulimit -n`), or lower max.connections"
_HARMLESS: Final = "remove the files by hand when the node is stopped; they do no harm"
_POLL: Final = "handle less between two polls (max_poll_records), or raise max_poll_interval_ms"
_STATUS: Final = "nothing if it stops; else start the brokers, or give the pipeline's user the right to write its topic"
_LEFT_OPEN: Final = "nothing: it times out, or `ottla txn abort` ends it, which consumers with read_committed wait for"
_RETRIED: Final = "nothing if it does not come again: it is tried again"

# Modules below `ottla`, and templates as they are in the code.
REMEDIES: Final[Mapping[str, Mapping[str, str]]] = {
    "server.api.forwarding.envelopes": {
        "the controller refused %s: error %d": "compare the versions and the security settings of all nodes",
    },
    "server.api.produce_looks": {"a batch of %s that was looked into failed": DEFECT},
    "server.api.turns": {"a request of %s that kept its turn failed": DEFECT},
    "server.api.wide_produce": {"a produce of %s in portions failed": DEFECT},
    "server.composed_node": {
        "early.start.listeners leaves a controller listener out: it opens when the ACLs are loaded": (
            "remove early.start.listeners, or add the controller listener, or else controllers wait for each other"
        ),
        "no data directory of this node works any more: it leaves the cluster until one does": _DISK,
    },
    "server.coordination.host": {
        "%s %s: its coordinator begins anew": _RETRIED,
        "a command to the coordinator of %s is refused: %s": "look at the topic with `ottla topic describe`",
        "a timer of %s failed": DEFECT,
        "an answer of %s could not be given": DEFECT,
    },
    "server.coordination.hosts": {
        "%s cannot be read: what it coordinates is not available": (
            "`ottla log verify` on its directory says what is damaged; let another replica lead (`ottla cluster elect`)"
        ),
    },
    "server.dead_letters.share_group_letters": {
        "%s: the batch at %d is given up without a letter: %s": "the batch is damaged: `ottla log verify` says how",
    },
    "server.groups.share_group_states": {
        "the state of share group %s could not be initialized: %s": _RETRIED,
    },
    "server.groups.streams_internal_topics": {
        "internal topics of streams group %s could not be created: %s": (
            "create them as the application asks, or give its user the right to create topics (`ottla acl add`)"
        ),
    },
    "server.handlers.cluster.envelope": {"a request in an envelope failed": DEFECT},
    "server.handlers.records.list_offsets": {"an offset could not be looked up": DEFECT},
    "server.loop.later": {"an answer could not be made": DEFECT},
    "server.loop.periodic_jobs": {"upkeep: %s failed": DEFECT},
    "server.loop.stages": {
        "the stop goes on, but the next start will have to recover: %s": "look at the disk before the next start",
        "the stop goes on, but the next start will have to recover": DEFECT,
    },
    "server.loop.stalls": {
        "%s%s": "nothing if it is rare; else give the node more CPU, or its clients smaller requests (docs/running.md)",
    },
    "server.loop.subscribers": {"%s could not be followed": DEFECT},
    "server.loop.tasks": {"work in the background failed": DEFECT},
    "server.loop.waiters": {"an answer that waited could not be given": DEFECT},
    "server.loop.watchdog": {
        "the event loop does not go on: %s": "look at the machine (swap, a hanging disk), or restart the node",
    },
    "server.metrics.http_endpoint": {
        "%s could not be answered": DEFECT,
        "accept failed: %s": _DESCRIPTORS,
    },
    "server.metrics.lag.lags": {"the lag of groups could not be looked at": DEFECT},
    "server.net.connection": {
        "a request of %s failed": DEFECT,
        "closing %s: %s": "the disk did not give what it should send: `ottla doctor --data DIR` looks at it",
        "closing %s: it is slow, and others wait for memory": "speed the client up, or raise queued.max.request.bytes",
    },
    "server.net.connection_limits": {
        "%s: %s is no address, and limits nobody": "name an address, or a host that this machine resolves",
    },
    "server.net.departed_client": {"work for %s could not be stopped": DEFECT},
    "server.net.handshakes": {
        "a TLS handshake with %s could not begin": DEFECT,
        "the connection of %s could not begin": DEFECT,
    },
    "server.net.listener": {"accept failed: %s": _DESCRIPTORS},
    "server.net.reply_slot": {
        "an answer (%s) could not be written": DEFECT,
        "a request of a client that has left failed": DEFECT,
    },
    "server.node": {
        "%s; the start goes on, because the metadata may have other settings of this node": (
            "nothing if the node starts; else correct the properties file"
        ),
    },
    "server.otel.pushes": {
        "%s cannot be pushed to %s: %s": (
            "start the OpenTelemetry collector, or correct ottla.otel.endpoint, .headers or .ca.file; it is tried again"
        ),
        "%s of this node are not accepted in part: %r": "see the log of the OpenTelemetry collector",
    },
    "server.peers.peer_requests": {
        "an answer of another node could not be given": DEFECT,
        "a request to another node could not be made": DEFECT,
        "an answer of another node could not be read": "compare the versions of the nodes (`ottla doctor`)",
        "node %d could not be asked": DEFECT,
    },
    "server.ports.disk_reserve": {"%s: the disk is full; delete topics or records, or make room": SAID},
    "server.ports.system": {
        "%s cannot be locked (%s): take care that only one node uses it": SAID,
        "the limit of %d open files stays as it is: %s": "raise the hard limit, as with LimitNOFILE of systemd",
    },
    "server.quorum.active_controller": {
        "the lead cannot be taken: %s": _RETRIED,
        "the active controller begins anew": DEFECT,
        "the metadata log cannot be written: %s": _DISK,
        "an answer of the active controller could not be given": DEFECT,
        "what was due in the cluster was put off: %s": _RETRIED,
        "what was due in the cluster failed": DEFECT,
        "a command of the active controller failed": DEFECT,
    },
    "server.quorum.broker_lifecycle": {
        "not registered yet: %s": _CONTROLLERS,
        "the controller knows another registration of this broker: registering anew": (
            "nothing after a restart; else make sure that no other node has the same node.id"
        ),
        "no heartbeat: %s": _CONTROLLERS,
        "the controller refused a heartbeat: %s": _RETRIED,
        "the controller found no other leaders in time: stopping all the same": (
            "nothing if all nodes stop; else see which partitions have one replica (`ottla doctor`)"
        ),
        "the controller is not registered yet: %s": _CONTROLLERS,
        "a heartbeat failed": DEFECT,
    },
    "server.quorum.broker_liveness": {
        "broker %d is gone: nobody listens at %s": "start the broker, unless it was stopped on purpose",
    },
    "server.quorum.flushing": {"the metadata log cannot be put on disk: %s": _DISK},
    "server.quorum.joining": {
        "waiting for a controller that says which cluster this node joins: %s. Should this node be the first "
        "controller: `ottla format --standalone` makes it that": SAID,
    },
    "server.quorum.metadata_host": {
        "the metadata of the cluster cannot be followed any further: this node stops": DEFECT,
    },
    "server.quorum.metadata_snapshots": {"no metadata snapshot could be written: %s": _ROOM},
    "server.quorum.quorum": {
        "the metadata had to do without something that was damaged: %s": (
            "nothing if other controllers are up: they have it; else `ottla log verify` on the metadata log"
        ),
        "no vote from this node: its disk was empty, and what it has fetched since may not be all that was committed. "
        "Bring the other controllers back; if they are lost, see docs/quorum.md": SAID,
        "no vote from this node: its disk is empty, perhaps because it lost one. It waits for a leader, or until all "
        "voters are up and empty, too (missing: %s). If they are lost, see docs/quorum.md": SAID,
        "the metadata log cannot be read: %s": _DISK,
        "the metadata log cannot be written: %s": _DISK,
    },
    "server.quorum.sending": {"what another node says cannot be followed": DEFECT},
    "server.quorum.topic_creation": {
        "this node has not heard of the topics that the controller created": _RETRIED,
        "topic %s, which a client asked for, cannot be created: %s": (
            "create it (`ottla topic create`), or mend what the line says"
        ),
    },
    "server.replication.assignments": {"the directories of replicas could not be told": DEFECT},
    "server.replication.fetcher": {
        "following broker %d rests: %s": _NODES,
        "%s cannot be fetched from broker %d: %s": "look at the log of that broker, which leads the partition",
        "the answer of broker %d could not be taken": DEFECT,
        "broker %d refuses a fetch: %s": "compare the security settings and the versions of both brokers",
        "%s cannot be followed": DEFECT,
        "broker %d cannot be followed": DEFECT,
    },
    "server.replication.isr_changes": {"changes of in-sync replicas could not be proposed": DEFECT},
    "server.replication.log_dirs": {
        "%s": _HARMLESS,
        "%s: %s": _HARMLESS,
        "%s cannot be moved to %s": DEFECT,
    },
    "server.replication.out_of_range": {
        "%s ends at %d, its leader at %d: the rest is cut off": (
            "nothing if unclean elections are allowed or wanted; else look at unclean.leader.election.enable"
        ),
        "%s ends at %d, its leader starts at %d: begun anew there": (
            "nothing: retention deleted what the follower lacks; if it comes often, see why followers fall behind"
        ),
    },
    "server.replication.replication": {"partition %d of %s cannot be followed: %s": _DISK},
    "server.schemas.schema_cache": {
        "the batch at offset %d of %s cannot be read: passed over (%s)": (
            "see what wrote it (`ottla log dump`); let only the registry write to this topic (`ottla acl add`)"
        ),
        "the record at offset %d of %s cannot be taken in: passed over": DEFECT,
    },
    "server.security.audit.writer": {
        "the audit log cannot be written to %s, so %s: %s": "make room or mend the rights there (ottla.audit.to)",
        "%d events of the audit log were not written to %s before the node stopped": "see why it could not be written",
    },
    "server.security.exposure": {
        "%s": SAID,
        "%s has %d characters: whoever has a token can try out such keys, and with the right one make tokens of "
        "anybody. Take at least %d random characters": SAID,
        "settings begin with listener.name.%s., but no listener has this name (the listeners are: %s): they have no "
        "effect": "correct the name, or remove the settings",
        "%s is for listeners with the protocol SSL only, as in Kafka: listener %s asks for no certificates. To have it "
        "ask, set %s%s.%s": SAID,
    },
    "server.security.listener_oauth": {
        "listener %s accepts tokens that nobody has signed: whoever reaches it can claim to be any user": (
            "set sasl.oauthbearer.jwks.endpoint.url, unless this is a test"
        ),
    },
    "server.security.listener_sasl": {
        "listener %s keeps its old SASL settings: %s": "correct the setting (`ottla config set broker`)",
        "listener %s serves of its SASL mechanisms %s: %s": (
            "correct the setting (`ottla config set broker`), through another listener if nobody can log in to this one"
        ),
    },
    "server.security.listener_tls": {
        "listener %s keeps its old certificate: %s": "mend the files; they are read again when they change",
        "listener %s refuses all clients: %s": "mend the files or the settings; they are tried again",
    },
    "server.security.logins": {
        "clients did not prove who they are since the last such line: %s": (
            "check mechanism, user and password of these clients (`ottla user list`)"
        ),
    },
    "server.security.own_login": {
        "this node logs in to brokers with %s as %s, whom the cluster does not know; %s": SAID,
    },
    "server.security.sasl_maker": {
        "listener %s: %s is ignored, as Kafka ignores it: a JAAS line belongs to one mechanism, under the name "
        "listener.name.%s.%s.%s": SAID,
    },
    "server.security.verification_keys": {
        "%s: the keys for tokens cannot be read, %s: %s": (
            "check sasl.oauthbearer.jwks.endpoint.url, and that this node reaches it; it is tried again"
        ),
    },
    "server.shares.coordinators": {"%s is not pruned now: %s": _RETRIED},
    "server.storage.batch_looks": {
        "a %s could not go on": DEFECT,
        "what was found in batches was of no use": DEFECT,
    },
    "server.storage.cleaning": {
        "the cleaner's checkpoint cannot be written: %s": _ROOM,
        "%s cannot be compacted and is left as it is: %s": "`ottla log verify` on its directory says what is damaged",
        "the cleaner failed; it goes on after its break": DEFECT,
    },
    "server.storage.cold_reads": {
        "cannot read ahead: %s": "look at the disk (`ottla doctor --data DIR`)",
        "what was read ahead was of no use": DEFECT,
    },
    "server.storage.directories": {
        "%s: %s-%d answers with storage errors: %s. To have the rest of it, stop the node, remove %s and start again: "
        "that cuts the log off where the damage is": SAID,
        "%s: %s answers with storage errors: %s. Move them away and start again": SAID,
        "%s": _DISK,
        "%s: %s; its %d partitions answer with storage errors until it recovers": _DISK,
        "%s: %s-%d was damaged and lost records that had been synced: it ends at offset %d, not at %d": (
            "replace the disk, which lost what it had confirmed; replicas in sync give the records back"
        ),
        "%s: %s-%d: %d bytes behind offset %d were no whole batch; cut off": (
            "nothing after a crash: nobody was told that these bytes are safe"
        ),
        "%s: %d notes could not be removed: %s": _HARMLESS,
        "%s: ignoring a damaged checkpoint: %s": "nothing: it is written anew; if it comes again, look at the disk",
    },
    "server.storage.directory_choice": {
        "%s/%s is not the directory of a partition and is left alone": "move it out of the data directory",
        "%s": _ROOM,
    },
    "server.storage.log_work": {"%s": _DISK},
    "server.storage.open_failures": {
        "%s cannot be opened: %s": "look at the disk (`ottla doctor --data DIR`) and at the limit of open files",
        "%s: %d partitions cannot be opened, the first is %s: %s": (
            "look at the disk (`ottla doctor --data DIR`) and at the limit of open files"
        ),
    },
    "server.storage.removal": {
        "%s belongs to no topic of this cluster and is set aside": (
            "delete it when nobody needs its records; if a topic is missing, ask first why (`ottla doctor`)"
        ),
        "%s is left: it holds files of somebody else (%s)": "move these files away, then delete the directory",
        "%s": _HARMLESS,
        "%s: %s": _HARMLESS,
    },
    "server.storage.replica_changes": {"a %s could not be followed": DEFECT},
    "server.telemetry.client_telemetry": {
        "client %s takes too much work to match with the patterns of all client metrics subscriptions, so some have no "
        "effect: make the patterns simpler": SAID,
    },
    "server.telemetry.subscriptions": {
        "client metrics subscription %s has no effect: there are more than %d; delete some": SAID,
        "client metrics subscription %s has no effect; change it: %s": SAID,
    },
    "server.tenants.tenants": {
        "%s": "raise the tenant's limit (`ottla tenant alter`), or let its topics keep less",
    },
    "server.txns.deliveries": {
        "the end of %s's transaction cannot be written to %s: %s": (
            "it is tried again; if it goes on, look at the partition's leader (`ottla topic describe`)"
        ),
        "the end of %s's transaction could not be written": DEFECT,
    },
    "registry.app": {"%s %s failed": DEFECT},
    "registry.leader": {
        "%s": SAID,
        "two registries have one URL (%s?), or the chosen one has none: no leader": (
            "give each registry a URL of its own with --advertise"
        ),
        "group %s: %s": "nothing if it stops; else see whether the brokers answer (`ottla cluster status`)",
    },
    "registry.security.cluster_acls": {
        "the cluster's ACLs cannot be read: %s": (
            "give the registry's user the right to describe the cluster (`ottla acl add`), or start the brokers"
        ),
    },
    "registry.security.gate": {
        "a forwarded request from %s is refused: %s": "give all registries of a group the same secret",
    },
    "registry.security.https_listener": {
        "the certificate of the https listener could not be looked at; it is tried again": "mend the files' rights",
    },
    "registry.security.passwords": {
        "no broker can be asked whether a password is right: %s": "start the brokers (`ottla cluster status`)",
    },
    "registry.service": {"%s": SAID},
    "registry.store": {
        "a write to %s failed: %s": "nothing if it stops; else look at the topic (`ottla topic describe`) and its disk",
        "a forwarded change is made, but not read here yet: %s": _RETRIED,
        "%s": "see whether the brokers answer (`ottla cluster status`), and whose the topic is; it is tried again",
    },
    "registry.tail": {
        "%s: the topic is read again from the start": _RETRIED,
        "%s: nothing is written until it can be; tried again every %d s": (
            "see what wrote the record (`ottla log dump`); a newer registry may read it"
        ),
        "%s cannot be read just now: %s": "nothing if it stops; else see whether the brokers answer",
        "the batch at offset %d of %s cannot be read: passed over (%s)": (
            "see what wrote it (`ottla log dump`); let only registries write to this topic (`ottla acl add`)"
        ),
        "%s is read again from the start: %s": _RETRIED,
    },
    "web.tls_acceptor": {
        "no connection can be accepted for a moment: %s": _DESCRIPTORS,
        "a connection could not be served": DEFECT,
    },
    "client.consumer.auto_commit": {
        "group %s: automatic commit failed: %s": (
            "nothing if it stops: it is tried again; else `ottla group describe` tells how the group is"
        ),
    },
    "client.consumer.supply": {
        "%s; going on from there": (
            "see what was deleted: retention.ms and retention.bytes of the topic, or `ottla topic delete-records`"
        ),
        "%s; going on from %s": (
            "see why the offset is gone: retention shorter than the consumer's breaks, or a topic that was made anew"
        ),
    },
    "client.leader_search": {
        "%s; it is read when it is there": "create the topic (`ottla topic create`), or correct its name",
    },
    "client.membership.classic": {"group %s: no poll for max_poll_interval_ms, leaving": _POLL},
    "client.membership.modern": {"group %s: no poll for max_poll_interval_ms, leaving": _POLL},
    "client.membership.share": {"share group %s: no poll for max_poll_interval_ms, leaving": _POLL},
    "client.profiles": {"%s holds secrets, and other users can read it: chmod 600 %s": SAID},
    "client.producer.producer": {
        "the producer was interrupted, and posted records were not delivered: %s": (
            "send these records again; flush() before the program ends delivers them"
        ),
    },
    "client.share.consumer": {
        "share group %s: acknowledgements of %d records of %s refused: %s": (
            "these records are delivered again: acknowledge them within share.record.lock.duration.ms of the group"
        ),
    },
    "spark.pipelines.status_publisher": {
        "the last status of the pipeline could not be written: %s": _STATUS,
        "the status cannot be written, or commands cannot be read: %s": _STATUS,
        "the status cannot be written, or commands cannot be read": DEFECT,
    },
    "spark.progress": {
        "what query %s has read could not be committed: %s": (
            "nothing if it stops: the query goes on by its checkpoint, only the lag of its group is told late; else "
            "give its user the right to read the group (`ottla acl add`)"
        ),
    },
    "spark.read.loss": {
        "%s": "see what was deleted (retention of the topic), and start the query anew if its result needs it",
    },
    "spark.read.task": {
        "%s for %.0f ms: taken for a gap that compaction left, and passed over": (
            "nothing if the topic is compacted; else `ottla log verify` on a replica's directory"
        ),
    },
    "spark.sink.driver": {
        "sink %s: %s; they %s": (
            "nothing where they are written again; see docs/exactly-once.md where they are given up"
        ),
        "sink %s: batch %d was written before; nothing is written again": (
            "nothing after a restart; else make sure that one query alone uses this checkpoint and this sink"
        ),
        "the transaction of %s is left open: %s": _LEFT_OPEN,
        "sink %s: transactions of attempts that were not needed are left open: %s": _LEFT_OPEN,
    },
    "sql.typed": {
        "values of schema %s are shown as null: %s": (
            "see whether the registry has the schema (`ottla schema list`), and whether --registry names the right one"
        ),
    },
    "web.waiting": {"%s speaks %s": "give this client the URL with the other scheme, http or https"},
}
_PACKAGE = "ottla."
_REPEATED = re.compile(r" \(and \d+ more like it\)\Z")


def remedy_of(record: logging.LogRecord) -> str:
    """Return what to do about a log line; an empty text if nothing is known, or if the line says it itself."""
    if record.levelno < logging.WARNING:
        return ""
    known = REMEDIES.get(record.name.removeprefix(_PACKAGE), {})
    return known.get(_REPEATED.sub("", str(record.msg)), "")
