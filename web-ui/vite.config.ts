// How the UI is built and served while it is worked on. `MILLSTREAM_HTTP` names the node behind the development server.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const node = process.env.MILLSTREAM_HTTP ?? "http://127.0.0.1:8080";

export default defineConfig({
  // Relative, so that the one `<base href>` of index.html says where everything is.
  base: "./",
  plugins: [react()],
  build: {
    target: "es2023",
    // The policy of the page allows no data: addresses for scripts and styles.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One chunk's worth of small modules is not worth a request each.
    chunkSizeWarningLimit: 600,
  },
  server: {
    host: "127.0.0.1",
    proxy: {
      "/api": {
        target: node,
        changeOrigin: true,
        configure: (proxy) => {
          // The node takes requests of its own pages only; these come from the development server's.
          proxy.on("proxyReq", (request) => request.removeHeader("origin"));
        },
      },
    },
  },
  test: { environment: "node", include: ["src/**/*.test.ts"] },
});
