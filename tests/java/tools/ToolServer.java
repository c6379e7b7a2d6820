package ottla;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools, each call in this one JVM: {"main": class, "args": [...], "stdin": text} gives {"code", "out", "err"}.
 * A tool that wants to end the process (all of them go through Kafka's Exit) ends its own call only.
 */
public final class ToolServer {
    /** Unwinds a tool's call. Some tools catch it and "exit" again, so only the first exit of a call counts. */
    private static final class Ended extends Error {
        Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    private static ByteArrayOutputStream out;
    private static ByteArrayOutputStream err;
    private static ObjectNode first;

    private ToolServer() {}

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((code, message) -> ended(code));
        Exit.setHaltProcedure((code, message) -> ended(code));
        // Hooks of tools would otherwise pile up and run against closed clients when this JVM ends.
        Exit.setShutdownHookAdder((name, runnable) -> { });
        Lines.serve(ToolServer::call);
    }

    private static Object call(JsonNode request) throws Exception {
        List<String> words = new ArrayList<>();
        request.get("args").forEach(word -> words.add(word.asText()));
        PrintStream realOut = System.out;
        PrintStream realErr = System.err;
        InputStream realIn = System.in;
        out = new ByteArrayOutputStream();
        err = new ByteArrayOutputStream();
        first = null;
        int code = 0;
        PrintStream toOut = new PrintStream(out, true, StandardCharsets.UTF_8);
        PrintStream toErr = new PrintStream(err, true, StandardCharsets.UTF_8);
        System.setOut(toOut);
        System.setErr(toErr);
        System.setIn(new ByteArrayInputStream(request.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        try {
            // Scala tools write through scala.Console, which keeps its own idea of the standard streams.
            code = scala.Console.withOut(toOut, () -> scala.Console.withErr(toErr, () -> invoke(request.get("main").asText(), words)));
        } finally {
            System.setOut(realOut);
            System.setErr(realErr);
            System.setIn(realIn);
        }
        return first != null ? first : answer(code);
    }

    private static void ended(int code) {
        if (first == null) first = answer(code);
        throw new Ended();
    }

    private static ObjectNode answer(int code) {
        ObjectNode answer = Lines.JSON.createObjectNode();
        answer.put("code", code);
        answer.put("out", out.toString(StandardCharsets.UTF_8));
        answer.put("err", err.toString(StandardCharsets.UTF_8));
        return answer;
    }

    private static int invoke(String main, List<String> words) {
        try {
            Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) words.toArray(new String[0]));
            return 0;
        } catch (java.lang.reflect.InvocationTargetException thrown) {
            Throwable cause = thrown.getCause();
            if (!(cause instanceof Ended)) cause.printStackTrace();
            return 1;
        } catch (ReflectiveOperationException thrown) {
            throw new IllegalArgumentException(main, thrown);
        }
    }
}
