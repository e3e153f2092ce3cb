// The state of the page of messages, as it stands in its address.
import type { PayloadFormat } from "../api/records";
import { countOf, oneOf, textOf, type ZoneSearch, zoneOf } from "../search";

export const PAGE_SIZES = [20, 50, 100, 500] as const;
export const PAGE_SIZE_DEFAULT = 50;

export interface MessagesSearch extends ZoneSearch {
  /** All of them if absent. */
  partition?: number;
  /** `last` (if absent), `earliest`, `offset:N`, `time:MS` or `live`. */
  from?: string;
  /** Where the page begins; in place of `from`. */
  cursor?: string;
  limit?: number;
  format?: PayloadFormat;
  /** `partition:offset` of the message that is open. */
  open?: string;
}

const FROM = /^(last|earliest|live|offset:\d{1,16}|time:\d{1,16})$/;

export function messagesSearch(raw: Record<string, unknown>): MessagesSearch {
  const from = textOf(raw, "from");
  const open = textOf(raw, "open");
  return {
    ...zoneOf(raw),
    partition: countOf(raw, "partition", 2_147_483_647),
    from: from !== undefined && FROM.test(from) ? from : undefined,
    cursor: textOf(raw, "cursor"),
    limit: countOf(raw, "limit", 1000) || undefined,
    format: oneOf(raw, "format", ["text", "base64"] as const),
    open: open !== undefined && /^\d+:\d+$/.test(open) ? open : undefined,
  };
}

/** The message that is open: its partition and offset. */
export function placeOf(open: string): { partition: number; offset: number } {
  const [partition, offset] = open.split(":").map(Number);
  return { partition: partition ?? 0, offset: offset ?? 0 };
}
