// Keys that work on every page. Where text is typed, and while a dialog is open, they are text and the dialog's.
import { useRouter } from "@tanstack/react-router";
import { useEffect } from "react";

/** How long the second key of a pair may take. */
const PAIR_MS_MAX = 1500;

export const KEYS: [keys: string, what: string][] = [
  ["/", "to the filter of the page"],
  ["g o", "Overview"],
  ["g t", "Topics"],
  ["g p", "Processors"],
  ["j, k", "next and previous message"],
  ["Enter", "open the message"],
  ["Esc", "close what is open"],
  ["?", "this list"],
];

const PLACES: Record<string, "/" | "/topics" | "/processors"> = { o: "/", t: "/topics", p: "/processors" };

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("input, select, textarea, [contenteditable]") !== null;
}

export function useKeyboard(onHelp: () => void): void {
  const router = useRouter();
  useEffect(() => {
    let pairBegan = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      const { key, ctrlKey, metaKey, altKey } = event;
      if (ctrlKey || metaKey || altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]") !== null) return;
      const place = event.timeStamp - pairBegan < PAIR_MS_MAX ? PLACES[key] : undefined;
      pairBegan = key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (place !== undefined) {
        event.preventDefault();
        void router.navigate({ to: place });
      } else if (key === "/") {
        event.preventDefault();
        document.querySelector<HTMLElement>("[data-filter]")?.focus();
      } else if (key === "?") onHelp();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [router, onHelp]);
}
