// Every page and what its address may say.
import { createRootRoute, createRoute, createRouter, Link, redirect } from "@tanstack/react-router";
import { MessagesPage } from "./messages/MessagesPage";
import { messagesSearch } from "./messages/search";
import { OverviewPage } from "./overview/OverviewPage";
import { Empty, ProblemNotice } from "./parts/Notice";
import { Shell } from "./parts/Shell";
import { LogsPage } from "./processors/LogsPage";
import { logsSearch } from "./processors/logs";
import { ProcessorPage, ProcessorStatus } from "./processors/ProcessorPage";
import { ProcessorsPage, processorsSearch } from "./processors/ProcessorsPage";
import { ResultsPage } from "./processors/ResultsPage";
import { resultsSearch } from "./processors/results";
import { parseSearch, stringifySearch, textOf, zoneOf } from "./search";
import { ConfigsPage } from "./topics/ConfigsPage";
import { PartitionsPage } from "./topics/PartitionsPage";
import { TopicPage } from "./topics/TopicPage";
import { TopicsPage, topicsSearch } from "./topics/TopicsPage";

const root = createRootRoute({
  component: Shell,
  validateSearch: zoneOf,
  notFoundComponent: () => (
    <Empty>
      <h1>There is no such page</h1>
      <Link to="/">Overview</Link>
    </Empty>
  ),
});
const overview = createRoute({ getParentRoute: () => root, path: "/", component: OverviewPage });
const topics = createRoute({
  getParentRoute: () => root,
  path: "/topics",
  validateSearch: topicsSearch,
  component: TopicsPage,
});
export const topic = createRoute({ getParentRoute: () => root, path: "/topics/$topic", component: TopicPage });
const topicIndex = createRoute({
  getParentRoute: () => topic,
  path: "/",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/topics/$topic/messages", params, replace: true });
  },
});
const messages = createRoute({
  getParentRoute: () => topic,
  path: "/messages",
  validateSearch: messagesSearch,
  component: MessagesPage,
});
const partitions = createRoute({ getParentRoute: () => topic, path: "/partitions", component: PartitionsPage });
const configs = createRoute({
  getParentRoute: () => topic,
  path: "/configs",
  validateSearch: (raw: Record<string, unknown>): { filter?: string } => ({ filter: textOf(raw, "filter") }),
  component: ConfigsPage,
});
const processors = createRoute({
  getParentRoute: () => root,
  path: "/processors",
  validateSearch: processorsSearch,
  component: ProcessorsPage,
});
export const processor = createRoute({
  getParentRoute: () => root,
  path: "/processors/$processor",
  component: ProcessorPage,
});
const status = createRoute({ getParentRoute: () => processor, path: "/", component: ProcessorStatus });
const logs = createRoute({
  getParentRoute: () => processor,
  path: "/logs",
  validateSearch: logsSearch,
  component: LogsPage,
});
const results = createRoute({
  getParentRoute: () => processor,
  path: "/results",
  validateSearch: resultsSearch,
  component: ResultsPage,
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    topics,
    topic.addChildren([topicIndex, messages, partitions, configs]),
    processors,
    processor.addChildren([status, logs, results]),
  ]),
  basepath: new URL(document.baseURI).pathname,
  parseSearch,
  stringifySearch,
  defaultErrorComponent: ({ error }) => <ProblemNotice error={error} what="This page broke" />,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
