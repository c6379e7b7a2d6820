package ottla;

import org.apache.kafka.controller.Decisions;

/** Kafka's controller as a service: see Decisions. */
public final class ControllerServer {
    private ControllerServer() {}

    public static void main(String[] args) throws Exception {
        Lines.serve(new Decisions()::answer);
    }
}
