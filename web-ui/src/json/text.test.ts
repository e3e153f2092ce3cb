import { describe, expect, it } from "vitest";
import { compact, elements, integerOf, members, numbersOf, pretty, stringOf, whyNotJson } from "./text";

const EXACT = [
  "9223372036854775807",
  "-18446744073709551616",
  "1e400",
  "0.10",
  "1E+2",
  '"\\u00e4 \\" \\\\ {[,:]} 1.0"',
  "true",
  "null",
];

describe("members and elements", () => {
  it("give every value as the text that it is", () => {
    const text = `{ ${EXACT.map((value, index) => `"m${index}" :\n${value}`).join(" , ")} }`;
    expect([...members(text).values()]).toEqual(EXACT);
    expect(elements(` [${EXACT.join(" ,\t")}]`)).toEqual(EXACT);
  });

  it("do not look into what is nested", () => {
    const found = members('{"a":{"b":[1,{"c":"}"}]},"d":[[]],"e":{}}');
    expect([...found]).toEqual([
      ["a", '{"b":[1,{"c":"}"}]}'],
      ["d", "[[]]"],
      ["e", "{}"],
    ]);
  });

  it("read names as JSON strings, and keep the last of two", () => {
    expect([...members('{"\\u0061":1,"a":2}')]).toEqual([["a", "2"]]);
    expect(members("{}").size).toBe(0);
    expect(elements("[ ]")).toEqual([]);
  });

  it("refuse what is not JSON", () => {
    for (const text of ["", "1", "{", '{"a"}', '{"a":}', '{"a":1 "b":2}', '{"a":"x', "{a:1}"]) {
      expect(() => members(text), text).toThrow(SyntaxError);
    }
    for (const text of ["[1 2]", "[,]", "[1,"]) expect(() => elements(text), text).toThrow(SyntaxError);
  });
});

describe("pretty and compact", () => {
  it("keep every token", () => {
    const text = `{"a" : [ ${EXACT.join(",")} ],"b":{ },"c":[]}`;
    const expected = `{\n  "a": [\n    ${EXACT.join(",\n    ")}\n  ],\n  "b": {},\n  "c": []\n}`;
    expect(pretty(text)).toBe(expected);
    expect(compact(expected)).toBe(`{"a":[${EXACT.join(",")}],"b":{},"c":[]}`);
  });

  it("leave a single value alone", () => {
    for (const text of EXACT) {
      expect(pretty(text)).toBe(text);
      expect(compact(text)).toBe(text);
    }
  });
});

describe("single values", () => {
  it("are integers only where they can be held exactly", () => {
    expect(integerOf("9007199254740991", "offset")).toBe(Number.MAX_SAFE_INTEGER);
    for (const text of ["9007199254740993", "1.5", "1e3", '"1"', "", undefined]) {
      expect(() => integerOf(text, "offset"), text).toThrow(RangeError);
    }
  });

  it("are strings only where they are written so", () => {
    expect(stringOf('"a\\n"')).toBe("a\n");
    expect(stringOf("1")).toBeNull();
    expect(stringOf(undefined)).toBeNull();
  });

  it("that are not JSON say why", () => {
    expect(whyNotJson("{")).toMatch(/JSON/);
    expect(whyNotJson("9223372036854775807")).toBeNull();
  });

  it("for a chart are an object's numbers", () => {
    expect([...numbersOf('{"n":2,"s":"1","o":{"x":1},"d":-0.5}')]).toEqual([
      ["n", 2],
      ["d", -0.5],
    ]);
    expect(numbersOf("[1]").size).toBe(0);
    expect(numbersOf(null).size).toBe(0);
  });
});
