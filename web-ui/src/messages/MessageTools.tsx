// Which messages: partition, beginning, page size, form. What is chosen goes into the address at once; an offset and a
// time go there when they are whole.
import { type FormEvent, useState } from "react";
import type { PayloadFormat } from "../api/records";
import { Field } from "../parts/Field";
import { fieldOfTime, timeOfField, type Zone } from "../time";
import styles from "./Messages.module.css";
import { type MessagesSearch, PAGE_SIZE_DEFAULT, PAGE_SIZES } from "./search";

type Start = "last" | "earliest" | "offset" | "time" | "live";

const STARTS: [Start, string][] = [
  ["last", "Latest"],
  ["earliest", "Earliest"],
  ["offset", "Offset"],
  ["time", "Time"],
  ["live", "Live"],
];

interface MessageToolsProps {
  search: MessagesSearch;
  partitions: number[];
  zone: Zone;
  onChange: (change: Partial<MessagesSearch>) => void;
}

export function MessageTools({ search, partitions, zone, onChange }: MessageToolsProps) {
  const [kind, argument] = (search.from ?? "last").split(":") as [Start, string?];
  const [start, setStart] = useState<Start>(kind);
  const [offset, setOffset] = useState(kind === "offset" ? (argument ?? "") : "");
  const [time, setTime] = useState(kind === "time" ? fieldOfTime(Number(argument), zone) : "");
  const [error, setError] = useState<string | null>(null);

  const begin = (change: Partial<MessagesSearch>) => {
    setError(null);
    onChange({ ...change, cursor: undefined, open: undefined });
  };
  const choose = (chosen: Start) => {
    setStart(chosen);
    setError(null);
    if (chosen !== "offset" && chosen !== "time") begin({ from: chosen === "last" ? undefined : chosen });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (start === "offset") {
      const wanted = offset.trim();
      if (!/^\d+$/.test(wanted) || !Number.isSafeInteger(Number(wanted))) setError("An offset is a whole number");
      else begin({ from: `offset:${wanted}`, partition: search.partition ?? partitions[0] ?? 0 });
    } else if (start === "time") {
      const millis = timeOfField(time, zone);
      if (millis === null || millis < 0) setError("A date and a time of day, from 1970 on");
      else begin({ from: `time:${millis}` });
    } else begin({});
  };

  return (
    <form className={styles.tools} onSubmit={submit}>
      <Field label="Partition">
        {(wiring) => (
          <select
            {...wiring}
            data-filter
            value={search.partition ?? "all"}
            onChange={(event) =>
              begin({ partition: event.target.value === "all" ? undefined : Number(event.target.value) })
            }
          >
            <option value="all" disabled={start === "offset" && partitions.length > 1}>
              All
            </option>
            {partitions.map((partition) => (
              <option key={partition} value={partition}>
                {partition}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="From">
        {(wiring) => (
          <select {...wiring} value={start} onChange={(event) => choose(event.target.value as Start)}>
            {STARTS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {start === "offset" && (
        <Field label="Offset" error={error}>
          {(wiring) => (
            <input {...wiring} inputMode="numeric" value={offset} onChange={(event) => setOffset(event.target.value)} />
          )}
        </Field>
      )}
      {start === "time" && (
        <Field label={zone === "utc" ? "Time (UTC)" : "Time (local)"} error={error}>
          {(wiring) => (
            <input
              {...wiring}
              type="datetime-local"
              step="0.001"
              value={time}
              onChange={(event) => setTime(event.target.value)}
            />
          )}
        </Field>
      )}
      {(start === "offset" || start === "time") && (
        <button type="submit" className="primary">
          Go
        </button>
      )}
      {start !== "live" && (
        <Field label="Page size">
          {(wiring) => (
            <select
              {...wiring}
              value={search.limit ?? PAGE_SIZE_DEFAULT}
              onChange={(event) => onChange({ limit: Number(event.target.value) })}
            >
              {PAGE_SIZES.map((size) => (
                <option key={size}>{size}</option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label="Show as">
        {(wiring) => (
          <select
            {...wiring}
            value={search.format ?? "auto"}
            onChange={(event) => {
              const format = event.target.value as PayloadFormat;
              onChange({ format: format === "auto" ? undefined : format });
            }}
          >
            <option value="auto">decoded</option>
            <option value="text">text</option>
            <option value="base64">base64</option>
          </select>
        )}
      </Field>
    </form>
  );
}
