// The messages of a topic: a page of them, or the live end. The address holds all that is chosen.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { useZone } from "../parts/zone";
import { Loading } from "../parts/Notice";
import { topicQuery } from "../topics/queries";
import { LiveMessages } from "./LiveMessages";
import { MessageDetail } from "./MessageDetail";
import styles from "./Messages.module.css";
import { MessageTools } from "./MessageTools";
import { PagedMessages } from "./PagedMessages";
import { ProduceForm } from "./ProduceForm";
import type { MessagesSearch } from "./search";

const here = getRouteApi("/topics/$topic/messages");

export function MessagesPage() {
  const { topic } = here.useParams();
  const search = here.useSearch();
  const navigate = here.useNavigate();
  const [zone] = useZone();
  const [produces, setProduces] = useState(false);
  const { data: detail } = useQuery(topicQuery(topic));

  const change = useCallback(
    (part: Partial<MessagesSearch>) => void navigate({ search: (before) => ({ ...before, ...part }) }),
    [navigate],
  );
  const open = useCallback((id: string) => change({ open: id }), [change]);
  const close = useCallback(() => change({ open: undefined }), [change]);

  if (detail === undefined) return <Loading what="the topic" />;
  const view = { topic, search, zone, onOpen: open };
  return (
    <>
      <div className="row">
        <MessageTools
          // A new beginning that came with the address shows in the fields, too.
          key={`${topic} ${search.from} ${zone}`}
          search={search}
          partitions={detail.partitions.map(({ partition }) => partition)}
          zone={zone}
          onChange={change}
        />
        <button type="button" className="push" onClick={() => setProduces(true)}>
          Produce
        </button>
      </div>
      <div className={styles.split} data-open={search.open !== undefined}>
        <div>
          {search.from === "live" ? <LiveMessages key={`${topic} ${search.partition} ${search.format}`} {...view} /> : <PagedMessages {...view} detail={detail} />}
        </div>
        {search.open !== undefined && (
          <MessageDetail
            topic={topic}
            open={search.open}
            format={search.format ?? "auto"}
            zone={zone}
            onFormat={(format) => change({ format: format === "auto" ? undefined : format })}
            onClose={close}
          />
        )}
      </div>
      {produces && (
        <ProduceForm
          topic={topic}
          partitions={detail.partitions.map(({ partition }) => partition)}
          onClose={() => setProduces(false)}
        />
      )}
    </>
  );
}
