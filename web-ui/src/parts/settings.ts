// What a person has chosen for all pages: theme, and the zone of times where an address does not say one.
import { useSyncExternalStore } from "react";
import type { Zone } from "../time";

export type Theme = "system" | "light" | "dark";

interface Settings {
  theme: Theme;
  zone: Zone;
}

const PLACE = "millstream.ui";
const listeners = new Set<() => void>();

function load(): Settings {
  let kept: Partial<Settings> = {};
  try {
    kept = JSON.parse(localStorage.getItem(PLACE) ?? "{}") as Partial<Settings>;
  } catch {
    // Not ours, or not allowed to be read: what is there by default will do.
  }
  return {
    theme: kept.theme === "light" || kept.theme === "dark" ? kept.theme : "system",
    zone: kept.zone === "utc" ? "utc" : "local",
  };
}

let settings = load();

function show(): void {
  if (settings.theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = settings.theme;
}
show();

export function changeSettings(change: Partial<Settings>): void {
  settings = { ...settings, ...change };
  try {
    localStorage.setItem(PLACE, JSON.stringify(settings));
  } catch {
    // It then holds for this visit only.
  }
  show();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSettings(): Settings {
  return useSyncExternalStore(subscribe, () => settings);
}
