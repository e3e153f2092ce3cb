// What a deploy form holds, and what is sent of it. The node judges; what is said here only saves a round trip.
import { fieldOfTime, formatDuration, timeOfField } from "../time";
import type { Module, Processor, Spec } from "./queries";

export interface Draft {
  name: string;
  input: string;
  from: "earliest" | "latest" | "offset" | "time";
  /** Of `offset` and of `time`, which is in UTC. */
  fromValue: string;
  output: string;
  windowType: "tumbling" | "hopping";
  sizeMs: string;
  advanceMs: string;
  graceMs: string;
  emit: "update" | "final";
  config: Record<string, string>;
}

export function newDraft(): Draft {
  return {
    name: "",
    input: "",
    from: "earliest",
    fromValue: "",
    output: "",
    windowType: "tumbling",
    sizeMs: "",
    advanceMs: "",
    graceMs: "0",
    emit: "update",
    config: {},
  };
}

/** What is deployed, to be changed. Secrets are not told and have to be typed anew. */
export function draftOf(processor: Processor): Draft {
  const [from, value] = processor.from.split(":") as [Draft["from"], string?];
  return {
    name: processor.name,
    input: processor.input,
    from,
    fromValue: from === "time" ? fieldOfTime(Number(value), "utc") : (value ?? ""),
    output: processor.output,
    windowType: processor.window.type,
    sizeMs: String(processor.window.size_ms),
    advanceMs: String(processor.window.advance_ms ?? ""),
    graceMs: String(processor.window.grace_ms),
    emit: processor.emit,
    config: { ...processor.config },
  };
}

export function specOf(module: string, draft: Draft): Spec {
  const config = Object.entries(draft.config).filter(([, value]) => value !== "");
  const millis = draft.from === "time" ? String(timeOfField(draft.fromValue, "utc") ?? draft.fromValue) : draft.fromValue;
  return {
    module,
    input: draft.input,
    from: draft.from === "offset" || draft.from === "time" ? `${draft.from}:${millis}` : draft.from,
    output: draft.output,
    window: {
      type: draft.windowType,
      size_ms: Number(draft.sizeMs),
      ...(draft.windowType === "hopping" ? { advance_ms: Number(draft.advanceMs) } : {}),
      grace_ms: Number(draft.graceMs),
    },
    emit: draft.emit,
    config: Object.fromEntries(config),
  } as Spec;
}

/** A number of milliseconds in words, or why it is none. */
export function durationHint(text: string): string {
  if (text === "") return "milliseconds";
  return /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? `= ${formatDuration(Number(text))}` : "a whole number of milliseconds";
}

/** What is plainly wrong, by the names that the node's problems give to fields. */
export function obvious(draft: Draft, module: Module): Map<string, string> {
  const found = new Map<string, string>();
  if (draft.name === "") found.set("name", "A processor has a name");
  if (draft.input === "") found.set("input", "Which topic is read?");
  if (draft.output === "") found.set("output", "Where do results go?");
  const size = Number(draft.sizeMs);
  if (!(size >= 1)) found.set("window.size_ms", "1 at least");
  const advance = Number(draft.advanceMs);
  if (draft.windowType === "hopping" && !(advance >= 1 && advance <= size)) {
    found.set("window.advance_ms", "From 1 to the window's size");
  }
  for (const { name, required, default: fallback } of module.parameters) {
    const lacks = (draft.config[name] ?? "") === "" && (fallback ?? null) === null;
    if (required && lacks) found.set(`config.${name}`, "It has to be set");
  }
  return found;
}
