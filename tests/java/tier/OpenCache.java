package org.apache.kafka.server.log.remote.metadata.storage;

import java.util.Iterator;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;

/** Kafka's cache, whose methods only classes of its package may call. */
public final class OpenCache {
    private final RemoteLogMetadataCache cache = new RemoteLogMetadataCache();

    public OpenCache() {
        cache.markInitialized();
    }

    public void apply(RemoteLogMetadata metadata) throws RemoteResourceNotFoundException {
        if (metadata instanceof RemoteLogSegmentMetadata) cache.addCopyInProgressSegment((RemoteLogSegmentMetadata) metadata);
        else cache.updateRemoteLogSegmentMetadata((RemoteLogSegmentMetadataUpdate) metadata);
    }

    public Iterator<RemoteLogSegmentMetadata> all() {
        return cache.listAllRemoteLogSegments();
    }

    public Iterator<RemoteLogSegmentMetadata> listed(int epoch) throws RemoteResourceNotFoundException {
        return cache.listRemoteLogSegments(epoch);
    }

    public Optional<Long> highest(int epoch) {
        return cache.highestOffsetForEpoch(epoch);
    }

    public Optional<RemoteLogSegmentMetadata> at(int epoch, long offset) {
        return cache.remoteLogSegmentMetadata(epoch, offset);
    }

    public Optional<RemoteLogSegmentMetadata> withTransactions(int epoch, long offset) {
        return cache.nextSegmentWithTxnIndex(epoch, offset);
    }
}
