// Records as rows. Keys and values stay text from the wire to the page: the envelope is taken apart by its text, and a
// number in a payload is never made a number.
import { elements, integerOf, members, stringOf } from "../json/text";
import { doorUrl } from "./client";
import { problemOfResponse } from "./problem";

/** How keys and values are asked for: as the topic's serdes or the default formats give them, or raw. */
export type PayloadFormat = "auto" | "text" | "base64";

/** A key or a value. */
export interface Payload {
  /** `null`: there is none, which for a value is a tombstone. */
  kind: "null" | "json" | "text" | "base64";
  text: string;
  /** Why it is not shown in the form that was asked for. */
  why?: string;
}

export interface RecordHeader {
  name: string;
  /** null: the header has no value. */
  value: string | null;
  isBase64: boolean;
}

export interface RecordRow {
  /** `partition:offset`. */
  id: string;
  partition: number;
  offset: number;
  timestamp: number;
  key: Payload;
  value: Payload;
  headers: RecordHeader[];
}

export interface RecordsPage {
  rows: RecordRow[];
  next: string;
}

const NOTHING: Payload = { kind: "null", text: "" };

function payload(found: Map<string, string>, name: "key" | "value", format: PayloadFormat): Payload {
  const why = stringOf(found.get(`${name}_error`));
  const base64 = stringOf(found.get(`${name}_base64`));
  if (base64 !== null) return raw(base64, why ?? undefined);
  const text = found.get(name);
  if (text === undefined || text === "null") return NOTHING;
  const string = stringOf(text);
  if (format === "base64" && string !== null) return { kind: "base64", text: string };
  if (format === "text" && string !== null) return { kind: "text", text: string };
  // A key without a serde comes as a string: it is text, not a JSON string with quotes around it.
  if (name === "key" && string !== null) return { kind: "text", text: string };
  return { kind: "json", text };
}

/** Bytes without the form that was asked for: as text where they are some. */
function raw(base64: string, why: string | undefined): Payload {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  try {
    return { kind: "text", text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), why };
  } catch {
    return { kind: "base64", text: base64, why };
  }
}

function header(text: string): RecordHeader {
  const found = members(text);
  const base64 = stringOf(found.get("value_base64"));
  return {
    name: stringOf(found.get("name")) ?? "",
    value: base64 ?? stringOf(found.get("value")),
    isBase64: base64 !== null,
  };
}

export function readRecord(text: string, format: PayloadFormat): RecordRow {
  const found = members(text);
  const partition = integerOf(found.get("partition"), "the partition");
  const offset = integerOf(found.get("offset"), "the offset");
  return {
    id: `${partition}:${offset}`,
    partition,
    offset,
    timestamp: integerOf(found.get("timestamp"), "the timestamp"),
    key: payload(found, "key", format),
    value: payload(found, "value", format),
    headers: elements(found.get("headers") ?? "[]").map(header),
  };
}

export function readRecordsPage(text: string, format: PayloadFormat): RecordsPage {
  const found = members(text);
  return {
    rows: elements(found.get("records") ?? "[]").map((record) => readRecord(record, format)),
    next: stringOf(found.get("next")) ?? "",
  };
}

export interface RecordsQuery {
  topic: string;
  partition?: number;
  from?: string;
  cursor?: string;
  limit?: number;
  format: PayloadFormat;
}

export function recordsUrl({ topic, format, ...query }: RecordsQuery): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  if (format !== "auto") {
    parameters.set("key_format", format);
    parameters.set("value_format", format);
  }
  return doorUrl(`/api/v1/topics/${encodeURIComponent(topic)}/records?${parameters.toString()}`);
}

export async function fetchRecords(query: RecordsQuery, signal?: AbortSignal): Promise<RecordsPage> {
  const response = await fetch(recordsUrl(query), { signal, headers: { accept: "application/json" } });
  if (!response.ok) throw await problemOfResponse(response);
  return readRecordsPage(await response.text(), query.format);
}

/** How many partitions are asked at once for their last records. */
const PARTITIONS_AT_ONCE = 6;
/** How many partitions a view of the last records may have. */
export const LAST_PARTITIONS_MAX = 128;

/** The last records before `ends`, by time; a record's place in its partition is kept. */
export async function fetchLast(
  query: RecordsQuery,
  bounds: { partition: number; start: number; end: number }[],
  count: number,
  signal?: AbortSignal,
): Promise<RecordRow[]> {
  if (bounds.length > LAST_PARTITIONS_MAX) {
    throw new RangeError(`the topic has ${bounds.length} partitions; choose one to see its last records`);
  }
  const waiting = bounds.filter(({ start, end }) => end > start);
  const found: RecordRow[] = [];
  const ask = async () => {
    for (let bound = waiting.shift(); bound !== undefined; bound = waiting.shift()) {
      const from = `offset:${Math.max(bound.start, bound.end - count)}`;
      const page = await fetchRecords({ ...query, partition: bound.partition, from, limit: count }, signal);
      found.push(...page.rows);
    }
  };
  await Promise.all(Array.from({ length: PARTITIONS_AT_ONCE }, ask));
  found.sort((a, b) => a.timestamp - b.timestamp || a.partition - b.partition || a.offset - b.offset);
  return found.slice(-count);
}

export interface NewRecord {
  partition?: number;
  keyFormat: "json" | "text" | "base64";
  /** null: no key. */
  key: string | null;
  valueFormat: "json" | "text" | "base64";
  /** null: a tombstone. */
  value: string | null;
  headers: { name: string; value: string }[];
}

/** The request's body; JSON goes into it as the text that was typed. */
export function produceBody(record: NewRecord): string {
  const written = (format: string, text: string | null) => {
    if (text === null) return "null";
    return format === "json" ? text : JSON.stringify(text);
  };
  const parts = [
    `"key":${written(record.keyFormat, record.key)}`,
    `"value":${written(record.valueFormat, record.value)}`,
    `"headers":${JSON.stringify(record.headers)}`,
  ];
  if (record.partition !== undefined) parts.push(`"partition":${record.partition}`);
  return `{"records":[{${parts.join(",")}}]}`;
}

/** Writes one record; where it is. */
export async function produce(topic: string, record: NewRecord): Promise<{ partition: number; offset: number }> {
  const formats = new URLSearchParams({ key_format: record.keyFormat, value_format: record.valueFormat });
  const url = doorUrl(`/api/v1/topics/${encodeURIComponent(topic)}/records?${formats.toString()}`);
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: produceBody(record),
  });
  if (!response.ok) throw await problemOfResponse(response);
  const [written] = elements(members(await response.text()).get("offsets") ?? "[]");
  const place = members(written ?? "{}");
  return {
    partition: integerOf(place.get("partition"), "the partition"),
    offset: integerOf(place.get("offset"), "the offset"),
  };
}
