// Typed calls of the node's API; what they answer goes through JSON.parse, so payloads of records are not read by it.
import createClient from "openapi-fetch";
import { problemOf } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Where the node's door is, seen from the page's `<base href>`: `/ui/` and `/api/` are neighbours. */
export const door = new URL("..", document.baseURI);

export function doorUrl(path: string): string {
  return new URL(path.replace(/^\//, ""), door).href;
}

export const api = createClient<paths>({ baseUrl: door.href.replace(/\/$/, "") });

interface Answer<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** What a call answers, or its problem thrown. */
export async function answered<Data>(call: Promise<Answer<Data>>): Promise<Data> {
  const { data, error, response } = await call;
  if (!response.ok) throw problemOf(response.status, error);
  return data as Data;
}

/** An offset or time as JSON.parse made it: it must not have lost digits. */
export function exact(number: number | null | undefined): number | null {
  if (number === null || number === undefined) return null;
  if (!Number.isSafeInteger(number)) throw new RangeError(`${number} is past what can be held exactly`);
  return number;
}
