// Runs cases one after the other, says how each went, and counts: the Node twin of the other suites' runners.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const CASE_MILLIS_MAX = 180_000;
const EVENTUALLY_MILLIS_MAX = 60_000;
const ASK_AGAIN_MILLIS = 50;
const PARTS = ["core", "groups", "configs"];

const run = Date.now().toString(36);
let counter = 0;

/** A name that nobody has used yet. */
export const name = (stem) => `${stem}-${run}-${++counter}`;

/** Asks until the answer is yes. */
export async function eventually(what, holds) {
  const deadline = Date.now() + EVENTUALLY_MILLIS_MAX;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`${what}: not so after ${EVENTUALLY_MILLIS_MAX} ms`);
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MILLIS));
  }
}

const cases = new Map();

export function add(part, caseName, body) {
  if (cases.has(caseName) || !PARTS.includes(part)) throw new Error(`${part} ${caseName}: unknown part or taken name`);
  cases.set(caseName, { part, body });
}

async function failureOf(body, bootstrap) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished after ${CASE_MILLIS_MAX} ms`)), CASE_MILLIS_MAX);
  });
  try {
    await Promise.race([body(bootstrap), limit]);
    return undefined;
  } catch (error) {
    return error.stack ?? String(error);
  } finally {
    clearTimeout(timer);
  }
}

const namesIn = (file) =>
  new Set(readFileSync(file, "utf8").split("\n").map((line) => line.trim()).filter((line) => line && line[0] !== "#"));

export async function main() {
  const { values: options } = parseArgs({
    options: {
      bootstrap: { type: "string", default: "127.0.0.1:9092" },
      only: { type: "string", default: "all" },
      allow: { type: "string" },
      case: { type: "string", default: "" },
      "log-dir": { type: "string" },
    },
  });
  const parts = options.only === "all" ? PARTS : options.only.split(",");
  const allowed = options.allow === undefined ? undefined : namesIn(options.allow);
  let passed = 0;
  let failed = 0;
  for (const allowedName of allowed ?? []) {
    if (!cases.has(allowedName)) {
      console.log(`FAILED ${allowedName}: the allow-list names a case that does not exist`);
      failed++;
    }
  }
  for (const [caseName, { part, body }] of cases) {
    if (!parts.includes(part) || !caseName.includes(options.case)) continue;
    if (allowed !== undefined && !allowed.has(caseName)) {
      console.log(`gap ${caseName}`);
      continue;
    }
    const begin = Date.now();
    const failure = await failureOf(body, options.bootstrap);
    const millis = Date.now() - begin;
    if (failure === undefined) {
      passed++;
      console.log(`ok ${caseName} (${millis} ms)`);
    } else {
      failed++;
      console.log(`FAILED ${caseName} (${millis} ms): ${failure}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(passed > 0 && failed === 0 ? 0 : 1);
}
