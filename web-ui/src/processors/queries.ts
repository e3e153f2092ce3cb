// What the node says of modules and processors.
import { queryOptions } from "@tanstack/react-query";
import { answered, api, doorUrl, exact, type Schemas } from "../api/client";
import { problemOfResponse } from "../api/problem";

export type Module = Schemas["Module"];
export type Processor = Schemas["Processor"];
export type Status = Schemas["ProcessorStatus"];
export type Spec = Schemas["ProcessorSpec"];

/** How often what runs is looked at. */
const LOOK_EVERY_MS = 1000;

export const processorsQuery = queryOptions({
  queryKey: ["processors"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/processors", { signal })),
  refetchInterval: 5000,
});

export function processorQuery(name: string) {
  return queryOptions({
    queryKey: ["processor", name],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/processors/{name}", { params: { path: { name } }, signal })),
    refetchInterval: 5000,
  });
}

export function statusQuery(name: string) {
  return queryOptions({
    queryKey: ["status", name],
    queryFn: async ({ signal }) => {
      const path = { params: { path: { name } }, signal };
      const status = await answered(api.GET("/api/v1/processors/{name}/status", path));
      for (const { position, end_offset: end } of status.tasks) {
        exact(position);
        exact(end);
      }
      return status;
    },
    refetchInterval: LOOK_EVERY_MS,
  });
}

export const modulesQuery = queryOptions({
  queryKey: ["modules"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/modules", { signal })),
});

export function topicPluginsQuery(topic: string) {
  return queryOptions({
    queryKey: ["topic-plugins", topic],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/topics/{topic}/plugins", { params: { path: { topic } }, signal })),
  });
}

/** What is still to be read by all tasks; null while one of them does not know. */
export function lagOf(status: Status): number | null {
  return status.tasks.reduce<number | null>(
    (sum, { lag }) => (sum === null || lag === null || lag === undefined ? null : sum + lag),
    0,
  );
}

/** A module's bytes go as they are. */
export async function uploadModule(file: Blob): Promise<Module> {
  const response = await fetch(doorUrl("/api/v1/modules"), {
    method: "POST",
    headers: { "content-type": "application/wasm" },
    body: file,
  });
  if (!response.ok) throw await problemOfResponse(response);
  return (await response.json()) as Module;
}
