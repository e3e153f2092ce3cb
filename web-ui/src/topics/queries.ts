// What the node says of topics.
import { queryOptions } from "@tanstack/react-query";
import { answered, api, exact, type Schemas } from "../api/client";

/** The most that one answer lists. */
export const TOPICS_MAX = 10_000;

/** One request, however many topics there are; past the most that an answer lists, the prefix chooses. */
export function topicsQuery(prefix = "") {
  return queryOptions({
    queryKey: ["topics", prefix],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/topics", { params: { query: { limit: TOPICS_MAX, prefix: prefix || undefined } }, signal })),
    refetchInterval: 10_000,
  });
}

export type TopicDetail = Schemas["TopicDetail"];

export function topicQuery(topic: string) {
  return queryOptions({
    queryKey: ["topic", topic],
    queryFn: async ({ signal }) => {
      const detail = await answered(api.GET("/api/v1/topics/{topic}", { params: { path: { topic } }, signal }));
      for (const { start, end } of detail.partitions) {
        exact(start);
        exact(end);
      }
      return detail;
    },
    refetchInterval: 5000,
  });
}

export function configsQuery(topic: string) {
  return queryOptions({
    queryKey: ["configs", topic],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/topics/{topic}/configs", { params: { path: { topic } }, signal })),
  });
}

/** How many records lie between the ends of the partitions: an upper bound where the log is compacted. */
export function recordCount(detail: TopicDetail): number {
  return detail.partitions.reduce((sum, { start, end }) => sum + Math.max(0, (end ?? 0) - (start ?? 0)), 0);
}
