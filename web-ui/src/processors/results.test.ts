import { describe, expect, it } from "vitest";
import type { RecordRow } from "../api/records";
import { arranged, Results, WINDOWS_MAX } from "./results";

let offset = 0;

function result(key: string, start: number, value: string | null, kind = "update"): RecordRow {
  offset += 1;
  const header = (name: string, text: string) => ({ name, value: text, isBase64: false });
  return {
    id: `0:${offset}`,
    partition: 0,
    offset,
    timestamp: 0,
    key: { kind: "text", text: key },
    value: value === null ? { kind: "null", text: "" } : { kind: "json", text: value },
    headers: [header("window.start", String(start)), header("window.end", String(start + 10)), header("window.kind", kind)],
  };
}

function results(ends: { partition: number; start: number; end: number }[] = []) {
  let show = () => {};
  const made = new Results(ends, (wanted) => (show = wanted));
  const view = () => {
    show();
    return made.snapshot();
  };
  return { made, view };
}

describe("results", () => {
  it("are the last of each key and window", () => {
    const { made, view } = results();
    made.take(result("a", 0, '{"n":1}'));
    made.take(result("a", 10, '{"n":5}'));
    made.take(result("b", 0, '{"n":7}'));
    made.take(result("a", 0, '{"n":9223372036854775807}', "final"));
    expect(arranged(view().results, { sort: "window" }).map(({ key, start, value, kind, updates }) => [key, start, value, kind, updates])).toEqual([
      ["a", 0, '{"n":9223372036854775807}', "final", 2],
      ["b", 0, '{"n":7}', "update", 1],
      ["a", 10, '{"n":5}', "update", 1],
    ]);
  });

  it("leave out what is no result of a window, and count it", () => {
    const { made, view } = results();
    made.take({ ...result("a", 0, "1"), headers: [] });
    expect(view()).toMatchObject({ results: [], others: 1, records: 1 });
  });

  it("are caught up when the ends that there were have been read, or nothing comes", () => {
    expect(results([{ partition: 0, start: 3, end: 3 }]).view().isCaughtUp).toBe(true);
    offset = 0;
    const read = results([{ partition: 0, start: 0, end: 3 }]);
    read.made.take(result("a", 0, "1"));
    expect(read.view().isCaughtUp).toBe(false);
    read.made.take(result("a", 0, "2"));
    expect(read.view()).toMatchObject({ isCaughtUp: true, caughtUpAt: 2 });
    const idle = results([{ partition: 1, start: 0, end: 3 }]);
    idle.made.idle();
    expect(idle.view().isCaughtUp).toBe(true);
  });

  it("make room by the windows that begin earliest", () => {
    const { made, view } = results();
    for (let start = 0; start <= WINDOWS_MAX; start += 1) made.take(result("a", start, "1"));
    const { results: kept, droppedWindows } = view();
    expect([kept.length + droppedWindows, droppedWindows]).toEqual([WINDOWS_MAX + 1, WINDOWS_MAX / 10]);
    expect(Math.min(...kept.slice(0, 100).map(({ start }) => start))).toBe(WINDOWS_MAX / 10);
  });

  it("are sorted and chosen as the address says", () => {
    const { made, view } = results();
    for (const [key, start] of [["b", 0], ["a", 10], ["A", 0]] as const) made.take(result(key, start, "1"));
    const keys = (search: Parameters<typeof arranged>[1]) => arranged(view().results, search).map(({ key }) => key);
    expect(keys({})).toEqual(["A", "a", "b"]);
    expect(keys({ sort: "window" })).toEqual(["A", "b", "a"]);
    expect(keys({ sort: "key" })).toEqual(["A", "a", "b"]);
    expect(keys({ sort: "recent", descending: "yes" })).toEqual(["b", "a", "A"]);
    expect(keys({ filter: "a", descending: "yes" })).toEqual(["a", "A"]);
  });
});
