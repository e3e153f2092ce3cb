// The HTTP door beside the page: what a test writes and looks at without it. Texts go as they are, so that numbers keep
// their digits.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const JSON_TYPE = { "content-type": "application/json" };
const PLUGINS = join(import.meta.dirname, "../../../target/plugins");

export class Door {
  constructor(base) {
    this.base = base;
  }

  async call(method, path, body, headers = JSON_TYPE) {
    const response = await fetch(`${this.base}${path}`, { method, headers: body === undefined ? {} : headers, body });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text;
  }

  /** Some cases write records of long ago: nothing goes for its age. */
  async topic(partitions = 1) {
    const name = `browser-${crypto.randomUUID().slice(0, 8)}`;
    const configs = { "retention.ms": "-1" };
    await this.call("POST", "/api/v1/topics", JSON.stringify({ name, partitions, configs }));
    return name;
  }

  /** `records` are the texts of records as the door takes them. */
  async write(topic, ...records) {
    return this.call("POST", `/api/v1/topics/${topic}/records`, `{"records":[${records.join(",")}]}`);
  }

  async upload(name) {
    const bytes = readFileSync(component(name));
    return JSON.parse(await this.call("POST", "/api/v1/modules", bytes, { "content-type": "application/wasm" }));
  }
}

export function component(name) {
  return join(PLUGINS, `${name}.wasm`);
}
