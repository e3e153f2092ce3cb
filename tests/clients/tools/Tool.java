import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's own command line tools and keeps what they print.
 *
 * <p>In this process, because each JVM costs a second or two of CPU; a few cases use the scripts to show that these work.
 */
final class Tool {
    private static final int SCRIPT_SECONDS_MAX = 120;

    /** What a tool has left behind. */
    record Result(int code, String output, String errors) {
        List<String> lines() {
            return output.lines().toList();
        }
    }

    private static final class Ended extends Error {
        private static final long serialVersionUID = 1;

        Ended(int code) {
            super("exit " + code, null, false, false);
        }
    }

    private Tool() {}

    /** Calls the main method of `org.apache.kafka.tools.NAME`. */
    static Result run(String name, String input, String... arguments) throws Exception {
        PrintStream output = System.out;
        PrintStream errors = System.err;
        InputStream in = System.in;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complained = new ByteArrayOutputStream();
        // A tool may catch what ends it here and then exit once more: its first word counts.
        AtomicReference<Integer> exit = new AtomicReference<>();
        List<Runnable> hooks = new CopyOnWriteArrayList<>();
        Exit.Procedure procedure = (code, message) -> {
            exit.compareAndSet(null, code);
            throw new Ended(code);
        };
        Exit.setExitProcedure(procedure);
        Exit.setHaltProcedure(procedure);
        Exit.setShutdownHookAdder((hook, body) -> hooks.add(body));
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(complained, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        try {
            Class.forName("org.apache.kafka.tools." + name).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) {
                exit.compareAndSet(null, 1);
                complained.writeBytes(String.valueOf(thrown.getCause()).getBytes(StandardCharsets.UTF_8));
            }
        } finally {
            hooks.forEach(Runnable::run);
            System.setOut(output);
            System.setErr(errors);
            System.setIn(in);
            Exit.resetExitProcedure();
            Exit.resetHaltProcedure();
            Exit.resetShutdownHookAdder();
        }
        int code = exit.get() == null ? 0 : exit.get();
        return new Result(code, printed.toString(StandardCharsets.UTF_8), complained.toString(StandardCharsets.UTF_8));
    }

    /** As `run`, and it must succeed. */
    static String ok(String name, String input, String... arguments) throws Exception {
        Result result = run(name, input, arguments);
        Check.that(result.code == 0, name + " " + String.join(" ", arguments) + " ended with " + result.code + ": "
                + result.output + result.errors);
        return result.output;
    }

    /** The script `tests/peers/kafka/tool NAME`, in a process of its own. */
    static String script(String name, String input, String... arguments) throws Exception {
        List<String> command = new java.util.ArrayList<>(List.of(System.getProperty("tool.script"), name));
        command.addAll(List.of(arguments));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (var stdin = process.getOutputStream()) {
            stdin.write(input.getBytes(StandardCharsets.UTF_8));
        }
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!process.waitFor(SCRIPT_SECONDS_MAX, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError(name + " did not end within " + SCRIPT_SECONDS_MAX + " s");
        }
        Check.equal(0, process.exitValue(), "exit code of " + name + ", which printed " + printed);
        return printed;
    }
}
