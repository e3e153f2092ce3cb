// Asks for a name to be typed before something is gone for good.
import { type FormEvent, type ReactNode, useState } from "react";
import { Dialog } from "./Dialog";
import { Field } from "./Field";
import { ProblemNotice } from "./Notice";

interface TypedConfirmationProps {
  title: string;
  name: string;
  action: string;
  failure: string;
  error: unknown;
  isPending: boolean;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

export function TypedConfirmation(properties: TypedConfirmationProps) {
  const { title, name, action, failure, error, isPending, onConfirm, onClose, children } = properties;
  const [typed, setTyped] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed === name) onConfirm();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <p>{children}</p>
        <Field label={`Type ${name} to confirm`}>
          {(wiring) => (
            <input {...wiring} autoComplete="off" value={typed} onChange={(event) => setTyped(event.target.value)} />
          )}
        </Field>
        {error !== null && error !== undefined && <ProblemNotice error={error} what={failure} />}
        <div className="row">
          <button type="submit" className="danger" disabled={typed !== name || isPending}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
