// Deploys a module as a processor, or changes one that is deployed.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useId, useState } from "react";
import { answered, api } from "../api/client";
import { ProblemError } from "../api/problem";
import { Dialog } from "../parts/Dialog";
import { Field } from "../parts/Field";
import { ProblemNotice } from "../parts/Notice";
import { topicsQuery } from "../topics/queries";
import { type Module, type Processor } from "./queries";
import { type Draft, draftOf, durationHint, newDraft, obvious, specOf } from "./spec";

interface DeployFormProps {
  module: Module;
  /** What is there already and is to be changed. */
  current?: Processor;
  onClose: () => void;
}

export function DeployForm({ module, current, onClose }: DeployFormProps) {
  const [draft, setDraft] = useState<Draft>(() => (current === undefined ? newDraft() : draftOf(current)));
  const [errors, setErrors] = useState<Map<string, string>>(new Map());
  const topics = useQuery(topicsQuery());
  const topicList = useId();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const deploying = useMutation({
    mutationFn: () => {
      const path = { name: draft.name };
      return answered(api.PUT("/api/v1/processors/{name}", { params: { path }, body: specOf(module.sha256, draft) }));
    },
    onSuccess: async (deployed) => {
      await queries.invalidateQueries();
      onClose();
      await navigate({ to: "/processors/$processor", params: { processor: deployed.name } });
    },
    onError: (error) => {
      const field = error instanceof ProblemError ? error.problem.field : undefined;
      if (field !== undefined && field !== null) setErrors(new Map([[field, error.message]]));
    },
  });
  const set = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const found = obvious(draft, module);
    setErrors(found);
    if (found.size === 0) deploying.mutate();
  };
  /** A text field of the draft. */
  const text = (
    field: "name" | "input" | "output" | "sizeMs" | "advanceMs" | "graceMs",
    label: string,
    path: string,
    extra: { hint?: ReactNode; list?: string; isFixed?: boolean; inputMode?: "numeric" } = {},
  ) => (
    <Field label={label} hint={extra.hint} error={errors.get(path)}>
      {(wiring) => (
        <input
          {...wiring}
          autoComplete="off"
          list={extra.list}
          inputMode={extra.inputMode}
          readOnly={extra.isFixed}
          value={draft[field]}
          onChange={(event) => set({ [field]: event.target.value })}
        />
      )}
    </Field>
  );
  const shownAtField = [...errors.keys()].some((path) => KNOWN.has(path) || path.startsWith("config."));

  return (
    <Dialog title={`${current === undefined ? "Deploy" : "Change"} ${current?.name ?? module.name}`} onClose={onClose}>
      <form onSubmit={submit} noValidate>
        <datalist id={topicList}>
          {topics.data?.topics.filter(({ internal }) => !internal).map(({ name }) => <option key={name} value={name} />)}
        </datalist>
        {text("name", "Processor name", "name", { isFixed: current !== undefined })}
        <div className="row top">
          {text("input", "Input topic", "input", { list: topicList })}
          <Field label="Begin at" error={errors.get("from")}>
            {(wiring) => (
              <select {...wiring} value={draft.from} onChange={(event) => set({ from: event.target.value as Draft["from"] })}>
                <option value="earliest">earliest</option>
                <option value="latest">latest</option>
                <option value="offset">offset</option>
                <option value="time">time</option>
              </select>
            )}
          </Field>
          {(draft.from === "offset" || draft.from === "time") && (
            <Field label={draft.from === "offset" ? "Offset" : "Time (UTC)"}>
              {(wiring) => (
                <input
                  {...wiring}
                  type={draft.from === "time" ? "datetime-local" : "text"}
                  step="0.001"
                  value={draft.fromValue}
                  onChange={(event) => set({ fromValue: event.target.value })}
                />
              )}
            </Field>
          )}
          {text("output", "Output topic", "output", { list: topicList, hint: "created if it is not there" })}
        </div>
        <div className="row top">
          <Field label="Window" error={errors.get("window.type") ?? errors.get("window")}>
            {(wiring) => (
              <select
                {...wiring}
                value={draft.windowType}
                onChange={(event) => set({ windowType: event.target.value as Draft["windowType"] })}
              >
                <option value="tumbling">tumbling</option>
                <option value="hopping">hopping</option>
              </select>
            )}
          </Field>
          {text("sizeMs", "Size (ms)", "window.size_ms", { inputMode: "numeric", hint: durationHint(draft.sizeMs) })}
          {draft.windowType === "hopping" &&
            text("advanceMs", "Advance (ms)", "window.advance_ms", {
              inputMode: "numeric",
              hint: durationHint(draft.advanceMs),
            })}
          {text("graceMs", "Grace (ms)", "window.grace_ms", { inputMode: "numeric", hint: durationHint(draft.graceMs) })}
          <Field label="Emit" error={errors.get("emit")}>
            {(wiring) => (
              <select {...wiring} value={draft.emit} onChange={(event) => set({ emit: event.target.value as Draft["emit"] })}>
                <option value="update">an update after each row</option>
                <option value="final">one final result</option>
              </select>
            )}
          </Field>
        </div>
        {module.parameters.length > 0 && <h3>Parameters of {module.name}</h3>}
        {module.parameters.map((parameter) => (
          <Field
            key={parameter.name}
            label={`${parameter.name}${parameter.required ? " (required)" : ""}`}
            hint={parameter.doc}
            error={errors.get(`config.${parameter.name}`)}
          >
            {(wiring) => (
              <input
                {...wiring}
                autoComplete="off"
                type={parameter.secret ? "password" : "text"}
                placeholder={parameter.default ?? undefined}
                value={draft.config[parameter.name] ?? ""}
                onChange={(event) => set({ config: { ...draft.config, [parameter.name]: event.target.value } })}
              />
            )}
          </Field>
        ))}
        {deploying.isError && !shownAtField && <ProblemNotice error={deploying.error} what="It was not deployed" />}
        <div className="row">
          <button type="submit" className="primary" disabled={deploying.isPending}>
            {current === undefined ? "Deploy processor" : "Change processor"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Fields whose errors are shown beside them. */
const KNOWN = new Set([
  "name",
  "input",
  "from",
  "output",
  "window",
  "window.type",
  "window.size_ms",
  "window.advance_ms",
  "window.grace_ms",
  "emit",
]);
