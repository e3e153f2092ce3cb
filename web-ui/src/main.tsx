import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ProblemError } from "./api/problem";
import { router } from "./router";
import "./styles.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // What the node refuses it refuses again.
      retry: (failures, error) => failures < 2 && !(error instanceof ProblemError),
      staleTime: 2000,
    },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no place for the UI");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
