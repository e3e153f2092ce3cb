import { describe, expect, it } from "vitest";
import { RING_ROWS_MAX, Ring } from "./ring";

function ring() {
  const frames: (() => void)[] = [];
  const made = new Ring<number>((change) => frames.push(change));
  const frame = () => frames.splice(0).forEach((change) => change());
  return { made, frame, frames };
}

describe("a ring", () => {
  it("keeps the newest rows, newest first", () => {
    const { made, frame } = ring();
    for (let row = 0; row < RING_ROWS_MAX + 3; row += 1) made.push(row, 0);
    frame();
    const { rows, total } = made.snapshot();
    expect(rows).toHaveLength(RING_ROWS_MAX);
    expect([rows[0], rows.at(-1), total]).toEqual([RING_ROWS_MAX + 2, 3, RING_ROWS_MAX + 3]);
  });

  it("tells once a frame, however many rows come", () => {
    const { made, frame, frames } = ring();
    let told = 0;
    made.subscribe(() => (told += 1));
    made.push(1, 0);
    made.push(2, 0);
    expect(frames).toHaveLength(1);
    frame();
    expect(told).toBe(1);
  });

  it("stands still while it is paused, and counts what waits", () => {
    const { made, frame } = ring();
    made.push(1, 0);
    frame();
    made.setPaused(true);
    made.push(2, 0);
    made.push(3, 0);
    frame();
    expect(made.snapshot()).toMatchObject({ rows: [1], waiting: 2, isPaused: true });
    made.setPaused(false);
    expect(made.snapshot()).toMatchObject({ rows: [3, 2, 1], waiting: 0, isPaused: false });
  });

  it("has the rate of the last whole seconds", () => {
    const { made } = ring();
    for (let now = 0; now < 20_000; now += 100) made.push(now, now);
    expect(made.rate(20_000)).toBe(10);
    expect(made.rate(60_000)).toBe(0);
  });
});
