// What a page says when there is nothing to show: not yet, nothing at all, or what went wrong.
import type { ReactNode } from "react";
import { ProblemError, sentence } from "../api/problem";
import styles from "./Notice.module.css";

export function ProblemNotice({ error, what }: { error: unknown; what: string }) {
  const problem = error instanceof ProblemError ? error.problem : null;
  return (
    <div className={styles.problem} role="alert">
      <strong>{what}</strong>
      <p>{sentence(error)}</p>
      {problem !== null && (
        <p className="quiet">
          <code>{problem.code}</code>
          {problem.request_id !== "" && ` · request ${problem.request_id}`}
        </p>
      )}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return <div className={styles.empty}>{children}</div>;
}

export function Loading({ what }: { what: string }) {
  return (
    <p className="quiet" role="status">
      Loading {what}…
    </p>
  );
}
