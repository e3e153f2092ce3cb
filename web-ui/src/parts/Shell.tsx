// What is around every page: the way to the others, the zone and theme, the keys.
import { Link, Outlet } from "@tanstack/react-router";
import { useCallback, useState } from "react";
import { doorUrl } from "../api/client";
import type { Zone } from "../time";
import { Dialog } from "./Dialog";
import { KEYS, useKeyboard } from "./keyboard";
import styles from "./Shell.module.css";
import { changeSettings, type Theme, useSettings } from "./settings";
import { useZone } from "./zone";

export function Shell() {
  const [helps, setHelps] = useState(false);
  const { theme } = useSettings();
  const [zone, setZone] = useZone();
  useKeyboard(useCallback(() => setHelps(true), []));
  return (
    <>
      <a className={styles.skip} href="#main" onClick={skip}>
        To the content
      </a>
      <header className={styles.bar}>
        <Link to="/" className={styles.name}>
          <img src="./icon.svg" alt="" width="22" height="22" /> Millstream
        </Link>
        <nav className={styles.nav} aria-label="Pages">
          <Link to="/" activeOptions={{ exact: true, includeSearch: false }}>
            Overview
          </Link>
          <Link to="/topics" activeOptions={{ includeSearch: false }}>
            Topics
          </Link>
          <Link to="/processors" activeOptions={{ includeSearch: false }}>
            Processors
          </Link>
          <a href={doorUrl("/docs")}>API</a>
        </nav>
        <div className={styles.end}>
          <select aria-label="Times in" value={zone} onChange={(event) => setZone(event.target.value as Zone)}>
            <option value="local">Local time</option>
            <option value="utc">UTC</option>
          </select>
          <select
            aria-label="Theme"
            value={theme}
            onChange={(event) => changeSettings({ theme: event.target.value as Theme })}
          >
            <option value="system">System theme</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
          <button type="button" aria-label="Keys" onClick={() => setHelps(true)}>
            ?
          </button>
        </div>
      </header>
      <main id="main" className={styles.main} tabIndex={-1}>
        <Outlet />
      </main>
      {helps && (
        <Dialog title="Keys" onClose={() => setHelps(false)}>
          <dl className="facts">
            {KEYS.map(([keys, what]) => (
              <div key={keys} style={{ display: "contents" }}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{what}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

/** The page has a base address, so a bare fragment would lead away from it. */
function skip(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}
