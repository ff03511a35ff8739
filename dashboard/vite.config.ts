import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** The service that the pages of `npm run dashboard:dev` talk to. */
const service = process.env["DASHBOARD_SERVICE"] ?? "http://127.0.0.1:8080";
// The browser's own headers say that a write comes from our page, so they pass as they are.
const proxied = { target: service, changeOrigin: false };

export default defineConfig(({ command }) => {
  // A build is one for production: in tests the variable would choose React's development build.
  if (command === "build") process.env["NODE_ENV"] = "production";
  return {
    root: fileURLToPath(new URL("./", import.meta.url)),
    base: "/dashboard/",
    plugins: [react(), tailwindcss()],
    // Neither inline scripts nor data: addresses pass the content policy.
    build: {
      target: "es2023",
      cssTarget: "chrome123",
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      // What most screens share is one file, not thirty.
      rolldownOptions: {
        output: { codeSplitting: { groups: [{ name: "shared", test: /dashboard\/src\/(api|components|lib)\// }] } },
      },
    },
    server: { proxy: { "/dashboard/api": proxied, "/dashboard/session": proxied, "/media": proxied } },
  };
});
