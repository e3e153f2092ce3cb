// The zone in which a page shows times: the address's, else the one that was chosen before.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Zone } from "../time";
import { changeSettings, useSettings } from "./settings";

export function useZone(): [Zone, (zone: Zone) => void] {
  const { zone: inAddress } = useSearch({ strict: false });
  const { zone: chosen } = useSettings();
  const navigate = useNavigate();
  const choose = useCallback(
    (zone: Zone) => {
      changeSettings({ zone });
      void navigate({ to: ".", search: (before: object) => ({ ...before, zone }), replace: true });
    },
    [navigate],
  );
  return [inAddress ?? chosen, choose];
}
