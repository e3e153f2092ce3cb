// Server-sent events over fetch: comes back by itself where it was cut off, and misses nothing, for it says which event it
// saw last.
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { ProblemError, problemOf, problemOfResponse } from "./problem";

const RECONNECT_MS_MIN = 250;
const RECONNECT_MS_MAX = 8000;

export type StreamState =
  | { phase: "connecting" }
  | { phase: "open" }
  | { phase: "waiting"; error: unknown; milliseconds: number }
  | { phase: "ended"; error: unknown };

export interface Follow {
  url: string;
  signal: AbortSignal;
  onEvent: (event: EventSourceMessage) => void;
  onState: (state: StreamState) => void;
  /** Taken from the platform unless a test brings its own. */
  fetch?: typeof fetch;
  wait?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Whether coming again can help. */
function mayPass(error: unknown): boolean {
  if (error instanceof ProblemError) return error.problem.status >= 500 || error.problem.retryable === true;
  // This is how fetch says that a connection failed; anything else is an event that cannot be understood.
  return error instanceof TypeError;
}

/** Follows a stream until the signal says so, or the node says that it is over. */
export async function follow(options: Follow): Promise<void> {
  const { url, signal, onEvent, onState } = options;
  const wait = options.wait ?? pause;
  let lastEventId: string | undefined;
  let milliseconds = RECONNECT_MS_MIN;
  while (!signal.aborted) {
    onState({ phase: "connecting" });
    let failure: unknown = null;
    try {
      await once(url, lastEventId, options.fetch ?? fetch, signal, () => onState({ phase: "open" }), (event) => {
        if (event.event === "error") throw problemOf(500, JSON.parse(event.data) as unknown);
        onEvent(event);
        if (event.id !== undefined) lastEventId = event.id;
        milliseconds = RECONNECT_MS_MIN;
      });
    } catch (error) {
      failure = error;
    }
    if (signal.aborted) return;
    if (failure !== null && !mayPass(failure)) {
      onState({ phase: "ended", error: failure });
      return;
    }
    onState({ phase: "waiting", error: failure, milliseconds });
    await wait(milliseconds, signal);
    milliseconds = Math.min(milliseconds * 2, RECONNECT_MS_MAX);
  }
}

async function once(
  url: string,
  lastEventId: string | undefined,
  call: typeof fetch,
  signal: AbortSignal,
  onOpen: () => void,
  onEvent: (event: EventSourceMessage) => void,
): Promise<void> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  if (lastEventId !== undefined) headers["last-event-id"] = lastEventId;
  const response = await call(url, { signal, headers });
  if (!response.ok) throw await problemOfResponse(response);
  if (response.body === null) return;
  onOpen();
  const parser = createParser({ onEvent });
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Whatever ended this, the connection must not stay open for nobody.
    await reader.cancel().catch(() => undefined);
  }
}
