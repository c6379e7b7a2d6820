package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * One member of a group: a consumer that its own thread polls, with everything it received and every rebalance it saw.
 * A consumer belongs to one thread, so what a test wants done (commit, close) is queued for that thread.
 */
final class Member implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final LinkedBlockingQueue<FutureTask<?>> wanted = new LinkedBlockingQueue<>();
    private final List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
    private final Set<TopicPartition> held = new LinkedHashSet<>();
    private final Thread thread;
    private int assigned;
    private int revoked;
    private int lost;
    private Throwable error;
    private volatile boolean closing;

    Member(JsonNode request) {
        consumer = Consumers.consumer(request);
        List<String> topics = new ArrayList<>();
        request.path("topics").forEach(topic -> topics.add(topic.asText()));
        if (request.hasNonNull("pattern")) subscribe(request.get("pattern").asText());
        else consumer.subscribe(topics, this);
        thread = new Thread(this::poll, request.get("member").asText());
        thread.setDaemon(true);
        thread.start();
    }

    /** "re2:…" is matched by the broker (4.x clients only, hence by reflection), anything else by the client. */
    private void subscribe(String pattern) {
        if (!pattern.startsWith("re2:")) {
            consumer.subscribe(Pattern.compile(pattern), this);
            return;
        }
        try {
            Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
            Object wrapped = type.getConstructor(String.class).newInstance(pattern.substring(4));
            KafkaConsumer.class.getMethod("subscribe", type, ConsumerRebalanceListener.class).invoke(consumer, wrapped, this);
        } catch (ReflectiveOperationException thrown) {
            throw new IllegalArgumentException(thrown);
        }
    }

    private void poll() {
        try {
            while (!closing) {
                var found = consumer.poll(Duration.ofMillis(50));
                synchronized (this) {
                    found.forEach(records::add);
                }
                for (FutureTask<?> task = wanted.poll(); task != null; task = wanted.poll()) task.run();
            }
        } catch (Throwable thrown) {
            synchronized (this) {
                error = thrown;
            }
            consumer.close(Duration.ofSeconds(5));
        }
    }

    /** Runs on the polling thread; a member that has failed answers with its failure. */
    <T> T doing(Callable<T> work) throws Exception {
        FutureTask<T> task = new FutureTask<>(work);
        wanted.add(task);
        for (int tenths = 0; tenths < 300; tenths++) {
            try {
                return task.get(100, TimeUnit.MILLISECONDS);
            } catch (java.util.concurrent.TimeoutException late) {
                synchronized (this) {
                    if (error != null) throw new java.util.concurrent.ExecutionException(error);
                }
            }
        }
        throw new java.util.concurrent.TimeoutException("the member's thread is busy");
    }

    /**
     * Commits the position of everything received. Each is named: the consumer's own commitSync() says nothing and leaves out
     * those that it is just validating, as it does when the broker was restarted.
     */
    Object commit() throws Exception {
        return doing(() -> {
            Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> each : records) {
                TopicPartition from = new TopicPartition(each.topic(), each.partition());
                if (consumer.assignment().contains(from) && !positions.containsKey(from))
                    positions.put(from, new OffsetAndMetadata(consumer.position(from, Duration.ofSeconds(20))));
            }
            consumer.commitSync(positions, Duration.ofSeconds(20));
            return Map.of();
        });
    }

    /** Keeps the polling thread busy for so long, as an application does that takes its time with a record. */
    Object stall(long ms) {
        wanted.add(new FutureTask<>(() -> {
            Thread.sleep(ms);
            return null;
        }));
        return Map.of();
    }

    KafkaConsumer<byte[], byte[]> consumer() {
        return consumer;
    }

    Object leave() throws Exception {
        synchronized (this) {
            if (error != null) return Map.of("error_was", error.getClass().getSimpleName());
        }
        doing(() -> {
            consumer.close(Duration.ofSeconds(10));
            closing = true;
            return null;
        });
        thread.join(10_000);
        return Map.of();
    }

    /** {"from"}: the assignment, the rebalances, the failure if any, and the records from the given one on. */
    synchronized Object state(JsonNode request) {
        ObjectNode answer = Lines.JSON.createObjectNode();
        answer.put("assigned", assigned);
        answer.put("revoked", revoked);
        answer.put("lost", lost);
        answer.put("failed", error == null ? null : error.getClass().getSimpleName());
        ArrayNode assignment = answer.putArray("assignment");
        held.forEach(each -> assignment.addArray().add(each.topic()).add(each.partition()));
        ArrayNode shown = answer.putArray("records");
        for (int at = request.path("from").asInt(0); at < records.size(); at++) {
            ConsumerRecord<byte[], byte[]> each = records.get(at);
            shown.addArray().add(each.topic()).add(each.partition()).add(each.offset()).add(Consumers.text(each.value()));
        }
        return answer;
    }

    @Override
    public synchronized void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        assigned++;
        held.addAll(partitions);
    }

    @Override
    public synchronized void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        revoked++;
        partitions.forEach(held::remove);
    }

    @Override
    public synchronized void onPartitionsLost(Collection<TopicPartition> partitions) {
        lost++;
        partitions.forEach(held::remove);
    }
}
