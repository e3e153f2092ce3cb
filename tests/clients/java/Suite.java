import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Runs cases one after the other, says how each went, and counts.
 *
 * <p>Every case belongs to a part (core, groups, configs), so that a server that has only the first of them can be looked
 * at. With an allow-list only the cases that it names run; the others are printed as gaps.
 */
final class Suite {
    interface Body {
        void run() throws Throwable;
    }

    private record Case(String part, String name, Body body) {}

    private static final int CASE_SECONDS_MAX = 180;

    final String bootstrap;
    /** Where the server keeps its logs, or null if its files are out of reach. */
    final Path logDirectory;
    private final Set<String> parts;
    private final Set<String> allowed;
    private final String wanted;
    private final Map<String, Case> cases = new LinkedHashMap<>();

    Suite(String[] arguments) throws Exception {
        Map<String, String> options = new LinkedHashMap<>();
        for (int at = 0; at + 1 < arguments.length; at += 2) {
            options.put(arguments[at], arguments[at + 1]);
        }
        bootstrap = options.getOrDefault("--bootstrap", "127.0.0.1:9092");
        String directory = options.get("--log-dir");
        logDirectory = directory == null ? null : Path.of(directory);
        String only = options.getOrDefault("--only", "all");
        parts = only.equals("all") ? Set.of("core", "groups", "configs") : Set.of(only.split(","));
        String allow = options.get("--allow");
        allowed = allow == null ? null : namesIn(Path.of(allow));
        wanted = options.getOrDefault("--case", "");
    }

    private static Set<String> namesIn(Path file) throws Exception {
        Set<String> names = new TreeSet<>();
        for (String line : Files.readAllLines(file)) {
            if (!line.isBlank() && !line.startsWith("#")) {
                names.add(line.trim());
            }
        }
        return names;
    }

    void add(String part, String name, Body body) {
        if (cases.put(name, new Case(part, name, body)) != null) {
            throw new IllegalArgumentException("two cases are called " + name);
        }
    }

    /** Runs what was asked for and ends the process. */
    void finish() {
        int passed = 0;
        int failed = 0;
        if (allowed != null) {
            Set<String> unknown = new TreeSet<>(allowed);
            unknown.removeAll(cases.keySet());
            for (String name : unknown) {
                System.out.println("FAILED " + name + ": the allow-list names a case that does not exist");
                failed++;
            }
        }
        for (Case one : cases.values()) {
            if (!parts.contains(one.part) || !one.name.contains(wanted)) {
                continue;
            }
            if (allowed != null && !allowed.contains(one.name)) {
                System.out.println("gap " + one.name);
                continue;
            }
            long begin = System.nanoTime();
            String failure = run(one);
            long millis = (System.nanoTime() - begin) / 1_000_000;
            if (failure == null) {
                passed++;
                System.out.println("ok " + one.name + " (" + millis + " ms)");
            } else {
                failed++;
                System.out.println("FAILED " + one.name + " (" + millis + " ms): " + failure);
            }
            System.out.flush();
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.out.flush();
        Runtime.getRuntime().halt(failed == 0 && passed > 0 ? 0 : 1);
    }

    private static String run(Case one) {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread thread = new Thread(() -> {
            try {
                one.body.run();
            } catch (Throwable thrown) {
                failure.set(thrown);
            }
        }, one.name);
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(CASE_SECONDS_MAX * 1000L);
        } catch (InterruptedException interrupted) {
            return "interrupted";
        }
        if (thread.isAlive()) {
            List<String> where = new ArrayList<>();
            for (StackTraceElement element : thread.getStackTrace()) {
                where.add(element.toString());
            }
            thread.interrupt();
            return "not finished after " + CASE_SECONDS_MAX + " s, at " + where;
        }
        if (failure.get() == null) {
            return null;
        }
        StringWriter text = new StringWriter();
        failure.get().printStackTrace(new PrintWriter(text));
        return text.toString().stripTrailing();
    }
}
