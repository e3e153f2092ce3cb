// A labelled control with its hint and its error, tied together for those who hear the page.
import { type ReactNode, useId } from "react";

interface Wiring {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | null;
  children: (wiring: Wiring) => ReactNode;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const says = error !== null && error !== undefined;
  const described = [hint !== undefined && `${id}-hint`, says && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        ...(described === "" ? {} : { "aria-describedby": described }),
        ...(says ? { "aria-invalid": true } : {}),
      })}
      {hint !== undefined && (
        <span className="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {says && (
        <span className="error" id={`${id}-error`} role="alert">
          {error}
        </span>
      )}
    </div>
  );
}
