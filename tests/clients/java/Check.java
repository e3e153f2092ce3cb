import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;

/** Expectations. */
final class Check {
    private static final int EVENTUALLY_SECONDS_MAX = 60;
    private static final int ASK_AGAIN_MILLIS = 50;

    private Check() {}

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object expected, Object actual, String what) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    static void contains(String text, String part) {
        that(text != null && text.contains(part), "expected «" + part + "» in «" + text + "»");
    }

    /** Runs what must fail with this kind of exception, and returns it, out of its ExecutionException if need be. */
    static <E extends Throwable> E fails(Class<E> kind, Suite.Body body) throws Throwable {
        try {
            body.run();
        } catch (Throwable thrown) {
            Throwable cause = thrown;
            while (cause instanceof ExecutionException && cause.getCause() != null) {
                cause = cause.getCause();
            }
            if (kind.isInstance(cause)) {
                return kind.cast(cause);
            }
            throw new AssertionError("expected " + kind.getSimpleName() + ", got " + cause, thrown);
        }
        throw new AssertionError("expected " + kind.getSimpleName() + ", but it succeeded");
    }

    /** Asks until the answer is yes. */
    static void eventually(String what, Callable<Boolean> holds) throws Exception {
        long deadline = System.nanoTime() + EVENTUALLY_SECONDS_MAX * 1_000_000_000L;
        while (!holds.call()) {
            that(System.nanoTime() < deadline, what + ": not so after " + EVENTUALLY_SECONDS_MAX + " s");
            Thread.sleep(ASK_AGAIN_MILLIS);
        }
    }
}
