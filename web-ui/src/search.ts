// What stands behind the question mark of an address: names and texts, read by each page into what it understands.
// Anything else is left out, so that an old or mistyped address still opens its page.
import type { Zone } from "./time";

type Raw = Record<string, unknown>;

export function parseSearch(text: string): Raw {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Raw): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

export interface ZoneSearch {
  zone?: Zone;
}

export function zoneOf(raw: Raw): ZoneSearch {
  return raw.zone === "utc" || raw.zone === "local" ? { zone: raw.zone } : {};
}

export function textOf(raw: Raw, name: string): string | undefined {
  const value = raw[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function countOf(raw: Raw, name: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = String(raw[name] ?? "");
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(count) && count <= most ? count : undefined;
}

export function oneOf<Value extends string>(raw: Raw, name: string, values: readonly Value[]): Value | undefined {
  return values.find((value) => value === raw[name]);
}
