package ottla;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce, in transactions, until it is killed: BOOTSTRAP INPUT OUTPUT GROUP PROTOCOL [NAME=VALUE…], the last of
 * which are further settings of its clients. Each input becomes "copy of " + value. An error that the clients cannot recover from ends the program with 3; whoever runs it starts it again.
 */
public final class Copier {
    private Copier() {}

    public static void main(String[] args) {
        Map<String, Object> reading = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "group.id", args[3], "group.protocol", args[4], "group.instance.id", args[3] + "-one",
            "isolation.level", "read_committed", "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "max.poll.records", "20"));
        Map<String, Object> writing = new HashMap<>(Map.of(
            "bootstrap.servers", args[0], "transactional.id", args[3] + "-copier", "transaction.timeout.ms", "10000", "linger.ms", "0"));
        for (String setting : List.of(args).subList(5, args.length)) {
            String[] parts = setting.split("=", 2);
            reading.put(parts[0], parts[1]);
            writing.put(parts[0], parts[1]);
        }
        try (var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer());
             var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            producer.initTransactions();
            consumer.subscribe(List.of(args[1]));
            System.out.println("running");
            while (true) copy(consumer, producer, args[2]);
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            Runtime.getRuntime().halt(3);
        }
    }

    private static void copy(KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer, String output) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
        if (records.isEmpty()) return;
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
            for (ConsumerRecord<String, String> each : records) {
                producer.send(new ProducerRecord<>(output, each.partition(), each.key(), "copy of " + each.value()));
                offsets.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
            }
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (KafkaException thrown) {
            producer.abortTransaction(); // throws in its turn if the producer is lost
            rewind(consumer);
        }
    }

    /** Back to what is committed: the records of the aborted transaction come again. */
    private static void rewind(KafkaConsumer<String, String> consumer) {
        consumer.committed(consumer.assignment()).forEach((partition, offset) -> {
            if (offset == null) consumer.seekToBeginning(List.of(partition));
            else consumer.seek(partition, offset.offset());
        });
    }
}
