// The console is built into the Python package: addresses from the root, no source maps, nothing from elsewhere.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [svelte()],
  base: "/", // pages have addresses of their own, at any depth
  build: {
    outDir: "../src/holdfast/console/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: addresses
    modulePreload: { polyfill: false },
  },
});
