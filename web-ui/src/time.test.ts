import { afterEach, describe, expect, it } from "vitest";
import { fieldOfTime, formatDuration, formatTime, timeOfField } from "./time";

const before = process.env.TZ;
afterEach(() => {
  process.env.TZ = before;
});

describe("times", () => {
  it("have milliseconds, and midnight is hour 00", () => {
    expect(formatTime(Date.UTC(2001, 0, 14, 0, 15, 0, 7), "utc")).toBe("2001-01-14 00:15:00.007Z");
    expect(formatTime(0, "utc")).toBe("1970-01-01 00:00:00.000Z");
  });

  it("are local with the offset of their day", () => {
    process.env.TZ = "Europe/Berlin";
    expect(formatTime(Date.UTC(2001, 0, 14, 23, 15), "local")).toBe("2001-01-15 00:15:00.000+01:00");
    expect(formatTime(Date.UTC(2001, 6, 14, 23, 15), "local")).toBe("2001-07-15 01:15:00.000+02:00");
    process.env.TZ = "America/St_Johns";
    expect(formatTime(0, "local")).toBe("1969-12-31 20:30:00.000-03:30");
  });

  it("survive their field in both zones", () => {
    process.env.TZ = "Asia/Kathmandu";
    for (const zone of ["utc", "local"] as const) {
      const millis = Date.UTC(2026, 10, 29, 21, 17, 3, 42);
      expect(timeOfField(fieldOfTime(millis, zone), zone)).toBe(millis);
    }
    expect(timeOfField("2026-11-29T21:17", "utc")).toBe(Date.UTC(2026, 10, 29, 21, 17));
    for (const text of ["", "soon", "2026-13-01T00:00", "5"]) expect(timeOfField(text, "utc"), text).toBeNull();
  });

  it("past what a date holds stay numbers", () => {
    expect(formatTime(9_007_199_254_740_991, "utc")).toBe("9007199254740991 ms");
  });
});

it("durations take the largest unit in which they are whole", () => {
  expect([3_600_000, 900_000, 7_776_000_000, 1500, 5_400_000, 0].map(formatDuration)).toEqual([
    "1 h",
    "15 min",
    "90 d",
    "1500 ms",
    "90 min",
    "0 ms",
  ]);
});
