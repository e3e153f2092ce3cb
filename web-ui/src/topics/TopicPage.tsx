// A topic: its name, what is bound to it, and its tabs.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, Outlet } from "@tanstack/react-router";
import { useState } from "react";
import { ProblemNotice } from "../parts/Notice";
import tabs from "../parts/Tabs.module.css";
import { formatCount } from "../time";
import { BoundPlugins } from "./BoundPlugins";
import { DeleteTopic } from "./DeleteTopic";
import { recordCount, topicQuery } from "./queries";

const here = getRouteApi("/topics/$topic");

export function TopicPage() {
  const { topic } = here.useParams();
  const [deletes, setDeletes] = useState(false);
  const detail = useQuery(topicQuery(topic));
  return (
    <>
      <div className="row center">
        <h1>
          <Link to="/topics">Topics</Link> / {topic}
        </h1>
        {detail.data?.internal === true && <span className="badge">internal</span>}
        {detail.data !== undefined && (
          <span className="quiet">
            {formatCount(detail.data.partitions.length)} partitions · {formatCount(recordCount(detail.data))} offsets
          </span>
        )}
        <BoundPlugins topic={topic} />
        {detail.data?.internal === false && (
          <button type="button" className="danger push" onClick={() => setDeletes(true)}>
            Delete topic
          </button>
        )}
      </div>
      <nav className={tabs.tabs} aria-label="Parts of the topic">
        <Link to="/topics/$topic/messages" params={{ topic }} activeOptions={{ includeSearch: false }}>
          Messages
        </Link>
        <Link to="/topics/$topic/partitions" params={{ topic }} activeOptions={{ includeSearch: false }}>
          Partitions
        </Link>
        <Link to="/topics/$topic/configs" params={{ topic }} activeOptions={{ includeSearch: false }}>
          Configuration
        </Link>
      </nav>
      {detail.isError ? <ProblemNotice error={detail.error} what="The topic cannot be shown" /> : <Outlet />}
      {deletes && <DeleteTopic topic={topic} onClose={() => setDeletes(false)} />}
    </>
  );
}
