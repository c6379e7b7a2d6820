package ottla;

import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

/**
 * A word count and a stream-table join, exactly once, until it is killed: BOOTSTRAP APPLICATION STATE_DIRECTORY PROTOCOL.
 * Reads APPLICATION-lines, -users and -orders; writes -counts (word to count) and -joined (user's key to "order for user").
 * Nothing is cached, so each word's counts come out one by one: a repeated or a missing input shows.
 */
public final class StreamsApp {
    private StreamsApp() {}

    public static void main(String[] args) throws Exception {
        String app = args[1];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", app);
        settings.put("state.dir", args[2]);
        settings.put("group.protocol", args[3]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("dsl.store.suppliers.class", BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        settings.put("statestore.cache.max.bytes", 0);
        settings.put("commit.interval.ms", 200);
        settings.put("replication.factor", 1);
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("producer.transaction.timeout.ms", 5000);
        // What a killed instance held must be given to the next one soon. The streams protocol asks the broker instead.
        if (args[3].equals("classic")) settings.put("consumer.session.timeout.ms", 6000);
        KafkaStreams streams = new KafkaStreams(topology(app).build(settings), settings);
        streams.setUncaughtExceptionHandler(thrown -> {
            thrown.printStackTrace();
            Runtime.getRuntime().halt(3);
            return null;
        });
        streams.start();
        Thread.currentThread().join();
    }

    private static StreamsBuilder topology(String app) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(app + "-lines")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count()
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(app + "-counts");
        KTable<String, String> users = builder.table(app + "-users");
        builder.<String, String>stream(app + "-orders")
            .join(users, (order, user) -> order + " for " + user)
            .to(app + "-joined");
        return builder;
    }
}
