// One message in full. It is read by its place, so that its address opens it whatever page it was found on.
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { fetchRecords, type PayloadFormat, recordsUrl } from "../api/records";
import { Loading, ProblemNotice } from "../parts/Notice";
import { formatTime, type Zone } from "../time";
import styles from "./Messages.module.css";
import { PayloadBlock } from "./PayloadText";
import { placeOf } from "./search";

interface MessageDetailProps {
  topic: string;
  open: string;
  format: PayloadFormat;
  zone: Zone;
  onFormat: (format: PayloadFormat) => void;
  onClose: () => void;
}

export function MessageDetail({ topic, open, format, zone, onFormat, onClose }: MessageDetailProps) {
  const { partition, offset } = placeOf(open);
  const query = { topic, partition, from: `offset:${offset}`, limit: 1, format };
  const { data, error } = useQuery({
    queryKey: ["record", topic, open, format],
    queryFn: ({ signal }) => fetchRecords(query, signal),
    // What is in the log does not change.
    staleTime: Number.POSITIVE_INFINITY,
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && document.querySelector("dialog[open]") === null) onClose();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [onClose]);
  const [first] = data?.rows ?? [];
  const row = first?.offset === offset ? first : undefined;
  return (
    <aside className={styles.detail} aria-label="Message">
      <div className="row center">
        <h2>
          Partition {partition}, offset {offset}
        </h2>
        <button type="button" className="push" aria-label="Close the message" onClick={onClose}>
          ✕
        </button>
      </div>
      <div className="row center">
        <label>
          Show as{" "}
          <select value={format} onChange={(event) => onFormat(event.target.value as PayloadFormat)}>
            <option value="auto">decoded</option>
            <option value="text">text</option>
            <option value="base64">base64</option>
          </select>
        </label>
        <button type="button" onClick={() => void navigator.clipboard.writeText(window.location.href)}>
          Copy link
        </button>
        <button type="button" onClick={() => void navigator.clipboard.writeText(`curl '${recordsUrl(query)}'`)}>
          Copy as curl
        </button>
      </div>
      {error !== null && <ProblemNotice error={error} what="The message cannot be read" />}
      {error === null && data === undefined && <Loading what="the message" />}
      {data !== undefined && row === undefined && (
        <p>
          There is no record at this offset any more, or never was: compaction takes records away, and markers of
          transactions have offsets, too.
        </p>
      )}
      {row !== undefined && (
        <>
          <dl className="facts">
            <dt>Time</dt>
            <dd className="mono">
              {formatTime(row.timestamp, zone)} ({row.timestamp} ms)
            </dd>
          </dl>
          <h3>Key</h3>
          <PayloadBlock payload={row.key} name="Key" />
          <h3>Value</h3>
          <PayloadBlock payload={row.value} name="Value" />
          <h3>Headers</h3>
          {row.headers.length === 0 ? (
            <p className="quiet">There are none.</p>
          ) : (
            <table>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Value</th>
                </tr>
              </thead>
              <tbody>
                {row.headers.map((header, index) => (
                  // Two headers of a record may have one name.
                  // oxlint-disable-next-line react/no-array-index-key
                  <tr key={index}>
                    <td className="mono">{header.name}</td>
                    <td className="mono">
                      {header.value ?? <span className={styles.none}>null</span>}{" "}
                      {header.isBase64 && <span className="badge">base64</span>}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </>
      )}
    </aside>
  );
}
