package ottla;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

/**
 * A metrics reporter for a real Kafka, so that it offers client telemetry. Like most receivers it cannot use a payload that
 * does not begin as OTLP's MetricsData does.
 */
public final class TelemetryReceiver implements MetricsReporter, ClientTelemetryExporterProvider {
    private static final int RESOURCE_METRICS = 0x0a;

    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        return (context, payload) -> {
            ByteBuffer data = payload.data();
            if (data.get(data.position()) != RESOURCE_METRICS) throw new IllegalArgumentException("no metrics");
        };
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
