import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { answered, api } from "../api/client";
import { Dialog } from "../parts/Dialog";
import { Field } from "../parts/Field";
import { ProblemNotice } from "../parts/Notice";

/** `key=value` lines as configuration; throws what is wrong with one. */
export function readConfigs(text: string): Record<string, string> {
  const configs: Record<string, string> = {};
  for (const line of text.split("\n").map((part) => part.trim())) {
    if (line === "") continue;
    const equals = line.indexOf("=");
    if (equals < 1) throw new Error(`“${line}” is not of the form key=value`);
    configs[line.slice(0, equals).trim()] = line.slice(equals + 1).trim();
  }
  return configs;
}

export function CreateTopic({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("");
  const [replicas, setReplicas] = useState("");
  const [configs, setConfigs] = useState("");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const creating = useMutation({
    mutationFn: async () => {
      const body = {
        name,
        partitions: partitions === "" ? undefined : Number(partitions),
        replication_factor: replicas === "" ? undefined : Number(replicas),
        configs: readConfigs(configs),
      };
      return answered(api.POST("/api/v1/topics", { body }));
    },
    onSuccess: async (created) => {
      await queries.invalidateQueries({ queryKey: ["topics"] });
      onClose();
      await navigate({ to: "/topics/$topic/messages", params: { topic: created.name } });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    creating.mutate();
  };
  return (
    <Dialog title="Create topic" onClose={onClose}>
      <form onSubmit={submit}>
        <Field label="Name" hint="Letters, digits, dot, underscore and hyphen">
          {(wiring) => (
            <input
              {...wiring}
              required
              maxLength={249}
              pattern="[A-Za-z0-9._\-]+"
              autoComplete="off"
              value={name}
              onChange={(event) => setName(event.target.value)}
            />
          )}
        </Field>
        <div className="row top">
          <Field label="Partitions" hint="The cluster's default if empty">
            {(wiring) => (
              <input
                {...wiring}
                type="number"
                min={1}
                value={partitions}
                onChange={(event) => setPartitions(event.target.value)}
              />
            )}
          </Field>
          <Field label="Replication factor" hint="The cluster's default if empty">
            {(wiring) => (
              <input
                {...wiring}
                type="number"
                min={1}
                value={replicas}
                onChange={(event) => setReplicas(event.target.value)}
              />
            )}
          </Field>
        </div>
        <Field label="Configuration" hint="A line each, as in cleanup.policy=compact">
          {(wiring) => (
            <textarea {...wiring} rows={3} value={configs} onChange={(event) => setConfigs(event.target.value)} />
          )}
        </Field>
        {creating.isError && <ProblemNotice error={creating.error} what="The topic was not created" />}
        <div className="row">
          <button type="submit" className="primary" disabled={creating.isPending}>
            Create
          </button>
        </div>
      </form>
    </Dialog>
  );
}
