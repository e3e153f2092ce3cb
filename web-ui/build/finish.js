// After the bundler: what a first visit loads must stay in its budget, and every file that shrinks gets a compressed
// neighbour, which the gateway serves to those who accept it.
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const FIRST_LOAD_BYTES_MAX = 180 * 1024;
const dist = join(import.meta.dirname, "..", "dist");
const page = readFileSync(join(dist, "index.html"), "utf8");

if (/<script(?![^>]*\ssrc=)|<style|\sstyle=/.test(page)) {
  throw new Error("index.html has an inline script or style, which the page's policy forbids");
}
let firstLoad = 0;
for (const name of readdirSync(dist, { recursive: true })) {
  const file = join(dist, name);
  if (!statSync(file).isFile() || !/\.(html|js|css|svg)$/.test(name)) continue;
  const plain = readFileSync(file);
  const small = gzipSync(plain, { level: 9 });
  if (small.length < plain.length) writeFileSync(`${file}.gz`, small);
  if (name === "index.html" || page.includes(name.replaceAll("\\", "/"))) firstLoad += Math.min(small.length, plain.length);
}
const kib = (firstLoad / 1024).toFixed(1);
if (firstLoad > FIRST_LOAD_BYTES_MAX) {
  throw new Error(`a first visit loads ${kib} KiB compressed; the budget is ${FIRST_LOAD_BYTES_MAX / 1024} KiB`);
}
console.log(`first load: ${kib} KiB compressed`);
