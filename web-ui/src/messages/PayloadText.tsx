// A key or a value on one line, and in full.
import { useState } from "react";
import type { Payload } from "../api/records";
import { compact, pretty } from "../json/text";
import { formatCount } from "../time";
import styles from "./Messages.module.css";

/** What one line shows at most. */
const LINE_CHARS_MAX = 300;
/** What is laid out before a person asks for all of it. */
const CHARS_AT_FIRST = 20 * 1024;

export function PayloadLine({ payload, isValue = false }: { payload: Payload; isValue?: boolean }) {
  if (payload.kind === "null") return <span className={styles.none}>{isValue ? "tombstone" : "no key"}</span>;
  if (payload.text === "") return <span className={styles.none}>empty</span>;
  const begin = payload.text.slice(0, LINE_CHARS_MAX);
  return <>{payload.kind === "json" && payload.text.length <= LINE_CHARS_MAX ? compact(begin) : begin}</>;
}

export function PayloadBlock({ payload, name }: { payload: Payload; name: string }) {
  const [isWhole, setWhole] = useState(false);
  if (payload.kind === "null") {
    return <p className={styles.none}>{name === "Value" ? "null: a tombstone, which deletes the key" : "null: no key"}</p>;
  }
  const isCut = !isWhole && payload.text.length > CHARS_AT_FIRST;
  const text = isCut ? payload.text.slice(0, CHARS_AT_FIRST) : payload.text;
  return (
    <>
      <p className="row center">
        <span className="badge">{payload.kind}</span>
        {payload.why !== undefined && <span className="quiet">{payload.why}</span>}
        <button
          type="button"
          className="push"
          aria-label={`Copy ${name.toLowerCase()}`}
          onClick={() => void navigator.clipboard.writeText(payload.text)}
        >
          Copy
        </button>
      </p>
      <pre data-payload={name.toLowerCase()} tabIndex={0} aria-label={name}>
        {payload.kind === "json" && !isCut ? pretty(text) : text}
      </pre>
      {isCut && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {formatCount(payload.text.length)} characters
        </button>
      )}
    </>
  );
}
