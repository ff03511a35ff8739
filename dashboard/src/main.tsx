import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { redeemCode } from "./api/one-time-code.ts";
import { queryClient } from "./api/query-client.ts";
import { keepOverReloads } from "./lib/kept.ts";
import { applyTheme } from "./lib/theme.ts";
import { router } from "./routes.tsx";
import "./theme.css";

applyTheme();
keepOverReloads();
await redeemCode();

const root = document.querySelector("#root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
