package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;

/**
 * The line protocol of every harness: one JSON object per line in, one JSON object per line out, in order.
 * An exception becomes {"error": class, "message": text, "trace": text}. Standard output belongs to the protocol alone.
 */
final class Lines {
    static final ObjectMapper JSON = new ObjectMapper();

    interface Verb {
        Object run(JsonNode request) throws Exception;
    }

    private Lines() {}

    static void serve(Verb verb) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 20);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Object answer;
            try {
                answer = verb.run(JSON.readTree(line));
            } catch (Throwable thrown) {
                answer = failure(thrown);
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
    }

    static ObjectNode failure(Throwable thrown) {
        Throwable cause = thrown;
        while (cause.getCause() != null && wrapper(cause)) cause = cause.getCause();
        StringWriter trace = new StringWriter();
        thrown.printStackTrace(new PrintWriter(trace));
        ObjectNode node = JSON.createObjectNode();
        node.put("error", cause.getClass().getSimpleName());
        node.put("message", String.valueOf(cause.getMessage()));
        node.put("trace", trace.toString());
        return node;
    }

    private static boolean wrapper(Throwable thrown) {
        return thrown instanceof java.util.concurrent.ExecutionException
            || thrown instanceof java.lang.reflect.InvocationTargetException;
    }
}
