import { describe, expect, it } from "vitest";
import { follow, type StreamState } from "./events";

function streaming(...pieces: string[]): Response {
  const bytes = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(bytes.encode(piece));
      controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Answers one request after the other, and stops the follower when there is no more. */
async function followed(...answers: (() => Response)[]) {
  const stop = new AbortController();
  const asked: (string | null)[] = [];
  const events: string[] = [];
  const states: StreamState[] = [];
  const waits: number[] = [];
  await follow({
    url: "http://node/stream",
    signal: stop.signal,
    onEvent: (event) => events.push(`${event.event}:${event.data}`),
    onState: (state) => states.push(state),
    fetch: (_, init) => {
      asked.push(new Headers(init?.headers).get("last-event-id"));
      const answer = answers.shift();
      if (answer === undefined) {
        stop.abort();
        return Promise.reject(new TypeError("gone"));
      }
      return Promise.resolve(answer());
    },
    wait: (milliseconds) => {
      waits.push(milliseconds);
      return Promise.resolve();
    },
  });
  return { asked, events, states, waits };
}

const problem = (status: number, retryable?: boolean) =>
  Response.json({ code: "c", detail: "said", title: "t", status, retryable }, { status });

describe("a followed stream", () => {
  it("gives events that come in pieces, and goes on behind the last one when it is cut off", async () => {
    const { asked, events } = await followed(
      () => streaming("id: *1\nevent: record\nda", 'ta: {"a":1,\ndata: "b":2}\n\nid: *2\nevent: rec'),
      () => streaming("id: *2\nevent: record\ndata: x\n\n"),
    );
    expect(events).toEqual(['record:{"a":1,\n"b":2}', "record:x"]);
    expect(asked).toEqual([null, "*1", "*2"]);
  });

  it("waits longer each time nothing comes, up to a bound, and not after something came", async () => {
    const down = () => problem(503);
    const { waits } = await followed(...Array.from({ length: 8 }, () => down), () => streaming("data: x\n\n"));
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000, 8000, 250]);
  });

  it("ends with a problem that coming again does not solve", async () => {
    const refused = await followed(() => problem(404));
    expect(refused.asked).toHaveLength(1);
    expect(refused.states.at(-1)).toMatchObject({ phase: "ended", error: { message: "said" } });
    const told = await followed(() =>
      streaming('event: error\ndata: {"code":"c","detail":"gone","status":404}\n\nevent: record\ndata: x\n\n'),
    );
    expect(told.events).toEqual([]);
    expect(told.states.at(-1)).toMatchObject({ phase: "ended", error: { message: "gone" } });
  });

  it("ends at an event that cannot be understood, which would be the same again", async () => {
    const { asked, states } = await followed(() => streaming("event: error\ndata: no JSON\n\n"));
    expect(asked).toHaveLength(1);
    expect(states.at(-1)).toMatchObject({ phase: "ended" });
  });
});
