// A modal dialog on the platform's own element, which keeps the focus and closes on Esc.
import { type ReactNode, useEffect, useId, useRef } from "react";

export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ReactNode }) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog === null || dialog.open) return;
    dialog.showModal();
    // The first field is what one came for, not the button that closes.
    dialog.querySelector<HTMLElement>("input, select, textarea")?.focus();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={heading} onClose={onClose}>
      <div className="row center">
        <h2 id={heading}>{title}</h2>
        <button type="button" className="push" aria-label="Close" onClick={() => element.current?.close()}>
          ✕
        </button>
      </div>
      {children}
    </dialog>
  );
}
