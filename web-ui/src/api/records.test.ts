import { describe, expect, it, vi } from "vitest";

vi.hoisted(() => vi.stubGlobal("document", { baseURI: "http://node.test/ui/" }));
const { produceBody, readRecord, readRecordsPage, recordsUrl } = await import("./records");

const record = (rest: string) => `{"partition":2,"offset":9007199254740991,"timestamp":12,${rest},"headers":[]}`;

describe("a record", () => {
  it("keeps the digits of its payload", () => {
    const { value } = readRecord(record('"key":"a","value":{"n":9223372036854775807,"x":1.10}'), "auto");
    expect(value).toEqual({ kind: "json", text: '{"n":9223372036854775807,"x":1.10}' });
  });

  it("is not shown with an offset that lost digits", () => {
    expect(() => readRecord('{"partition":0,"offset":9007199254740993,"timestamp":0}', "auto")).toThrow(RangeError);
  });

  it("tells null, empty text and what the key is", () => {
    const both = readRecord(record('"key":null,"value":null'), "auto");
    expect([both.key.kind, both.value.kind]).toEqual(["null", "null"]);
    expect(readRecord(record('"key":"","value":""'), "auto")).toMatchObject({
      key: { kind: "text", text: "" },
      value: { kind: "json", text: '""' },
    });
    expect(readRecord(record('"key":12345678901234567890,"value":1'), "auto").key).toEqual({
      kind: "json",
      text: "12345678901234567890",
    });
  });

  it("is text or base64 if that was asked for", () => {
    expect(readRecord(record('"key":"a","value":"{\\"a\\": 1}"'), "text").value).toEqual({ kind: "text", text: '{"a": 1}' });
    expect(readRecord(record('"key":"YQ==","value":"AA=="'), "base64")).toMatchObject({
      key: { kind: "base64", text: "YQ==" },
      value: { kind: "base64", text: "AA==" },
    });
  });

  it("whose bytes are not JSON is text where it can be, with the reason", () => {
    const text = readRecord(record('"key":null,"value":null,"value_error":"no JSON","value_base64":"w6Q="'), "auto");
    expect(text.value).toEqual({ kind: "text", text: "ä", why: "no JSON" });
    const bytes = readRecord(record('"key":null,"value":null,"value_error":"no JSON","value_base64":"/w=="'), "auto");
    expect(bytes.value).toEqual({ kind: "base64", text: "/w==", why: "no JSON" });
  });

  it("has headers of text, of bytes and of nothing", () => {
    const text = '{"partition":0,"offset":0,"timestamp":0,"key":null,"value":1,"headers":[' +
      '{"name":"a","value":"1"},{"name":"b","value":null,"value_base64":"/w=="},{"name":"c","value":null}]}';
    expect(readRecord(text, "auto").headers).toEqual([
      { name: "a", value: "1", isBase64: false },
      { name: "b", value: "/w==", isBase64: true },
      { name: "c", value: null, isBase64: false },
    ]);
  });
});

it("a page has records and the way on", () => {
  const page = readRecordsPage(`{"records":[${record('"key":null,"value":1')}],"next":"*1,2"}`, "auto");
  expect(page.rows.map((row) => row.id)).toEqual(["2:9007199254740991"]);
  expect(page.next).toBe("*1,2");
});

it("what is asked for stands in the address", () => {
  expect(recordsUrl({ topic: "a b", partition: 0, from: "offset:5", limit: 10, format: "auto" })).toBe(
    "http://node.test/api/v1/topics/a%20b/records?partition=0&from=offset%3A5&limit=10",
  );
  expect(recordsUrl({ topic: "t", format: "base64" })).toMatch(/\?key_format=base64&value_format=base64$/);
});

it("a record is written with the digits that were typed", () => {
  const body = produceBody({
    keyFormat: "text",
    key: '"',
    valueFormat: "json",
    value: '{"n": 9223372036854775807}',
    headers: [{ name: "h", value: "1" }],
    partition: 3,
  });
  expect(body).toBe(
    '{"records":[{"key":"\\"","value":{"n": 9223372036854775807},"headers":[{"name":"h","value":"1"}],"partition":3}]}',
  );
  const tombstone = produceBody({ keyFormat: "json", key: "1.0", valueFormat: "json", value: null, headers: [] });
  expect(tombstone).toBe('{"records":[{"key":1.0,"value":null,"headers":[]}]}');
});
