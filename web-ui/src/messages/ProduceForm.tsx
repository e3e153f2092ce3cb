// Writes one message. What is typed as JSON is sent as it is typed.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type NewRecord, produce } from "../api/records";
import { whyNotJson } from "../json/text";
import { Dialog } from "../parts/Dialog";
import { Field } from "../parts/Field";
import { ProblemNotice } from "../parts/Notice";

type Format = NewRecord["keyFormat"];

/** `name: value` lines as headers; throws what is wrong with one. */
export function readHeaders(text: string): { name: string; value: string }[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new Error(`the header “${line}” is not of the form name: value`);
    return { name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() };
  });
}

function FormatChoice({ label, value, onChange }: { label: string; value: Format; onChange: (value: Format) => void }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value as Format)}>
      <option value="json">JSON</option>
      <option value="text">text</option>
      <option value="base64">base64</option>
    </select>
  );
}

export function ProduceForm({
  topic,
  partitions,
  onClose,
}: {
  topic: string;
  partitions: number[];
  onClose: () => void;
}) {
  const [key, setKey] = useState("");
  const [hasKey, setHasKey] = useState(true);
  const [keyFormat, setKeyFormat] = useState<Format>("text");
  const [value, setValue] = useState("");
  const [valueFormat, setValueFormat] = useState<Format>("json");
  const [isTombstone, setTombstone] = useState(false);
  const [headers, setHeaders] = useState("");
  const [partition, setPartition] = useState("");
  const queries = useQueryClient();
  const keyError = hasKey && keyFormat === "json" && key !== "" ? whyNotJson(key) : null;
  const valueError = !isTombstone && valueFormat === "json" && value !== "" ? whyNotJson(value) : null;

  const writing = useMutation({
    mutationFn: async () =>
      produce(topic, {
        partition: partition === "" ? undefined : Number(partition),
        keyFormat,
        key: hasKey ? key : null,
        valueFormat,
        value: isTombstone ? null : value,
        headers: readHeaders(headers),
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["topic", topic] }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    writing.mutate();
  };
  // Nothing is no JSON value.
  const lacksJson =
    (hasKey && keyFormat === "json" && key.trim() === "") || (!isTombstone && valueFormat === "json" && value.trim() === "");
  return (
    <Dialog title={`Produce to ${topic}`} onClose={onClose}>
      <form onSubmit={submit}>
        <div className="row center">
          <label className="check">
            <input type="checkbox" checked={hasKey} onChange={(event) => setHasKey(event.target.checked)} />
            with a key
          </label>
          <FormatChoice label="Key format" value={keyFormat} onChange={setKeyFormat} />
          <Field label="Partition">
            {(wiring) => (
              <select {...wiring} value={partition} onChange={(event) => setPartition(event.target.value)}>
                <option value="">chosen by the key</option>
                {partitions.map((number) => (
                  <option key={number}>{number}</option>
                ))}
              </select>
            )}
          </Field>
        </div>
        {hasKey && (
          <Field label="Key" error={keyError}>
            {(wiring) => (
              <textarea {...wiring} rows={1} value={key} onChange={(event) => setKey(event.target.value)} />
            )}
          </Field>
        )}
        <div className="row center">
          <label className="check">
            <input type="checkbox" checked={isTombstone} onChange={(event) => setTombstone(event.target.checked)} />
            tombstone (null value)
          </label>
          {!isTombstone && <FormatChoice label="Value format" value={valueFormat} onChange={setValueFormat} />}
        </div>
        {!isTombstone && (
          <Field label="Value" error={valueError} hint="JSON is sent as it is typed, every digit of it">
            {(wiring) => (
              <textarea {...wiring} rows={6} value={value} onChange={(event) => setValue(event.target.value)} />
            )}
          </Field>
        )}
        <Field label="Headers" hint="A line each, as in trace: 7">
          {(wiring) => (
            <textarea {...wiring} rows={2} value={headers} onChange={(event) => setHeaders(event.target.value)} />
          )}
        </Field>
        {writing.isError && <ProblemNotice error={writing.error} what="The message was not written" />}
        <div className="row center">
          <button
            type="submit"
            className="primary"
            disabled={writing.isPending || lacksJson || keyError !== null || valueError !== null}
          >
            Write message
          </button>
          <span role="status">
            {writing.isSuccess && `Written to partition ${writing.data.partition} at offset ${writing.data.offset}`}
          </span>
        </div>
      </form>
    </Dialog>
  );
}
