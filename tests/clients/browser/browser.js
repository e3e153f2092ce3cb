// A headless browser whose pages are watched: what they ask of whom, what breaks in them, what their policy forbids.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

/** How long a page may take for anything that is waited for: ample, so that only a hang reaches it. */
export const WAIT_MS = 30_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

export class Browser {
  static async open(base) {
    const directory = mkdtempSync(join(tmpdir(), "millstream-browser-"));
    const context = await chromium.launchPersistentContext(directory, {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      headless: true,
      // The sandbox needs namespaces that root in a container has not.
      chromiumSandbox: process.getuid?.() !== 0,
      args: FLAGS,
      viewport: { width: 1400, height: 900 },
      timezoneId: "Europe/Berlin",
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(WAIT_MS);
    return new Browser(base, directory, context);
  }

  constructor(base, directory, context) {
    this.base = base;
    this.directory = directory;
    this.context = context;
    this.found = [];
    const origin = new URL(base).origin;
    context.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(`${origin}/`) && !url.startsWith("data:") && !url.startsWith("blob:")) {
        this.found.push(`a request to somebody else: ${url}`);
      }
    });
  }

  /** A page of the UI; what happens to it is found by `findings`. */
  async page(path) {
    const page = await this.context.newPage();
    page.on("pageerror", (error) => this.found.push(`an error in the page: ${error.message}`));
    await page.exposeBinding("reportViolation", (_, text) => this.found.push(`the policy forbids: ${text}`));
    await page.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        window.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile ?? ""}`);
      });
    });
    await page.goto(`${this.base}/ui/${path}`);
    return page;
  }

  /** What was wrong since it was last asked. */
  findings() {
    return this.found.splice(0);
  }

  async close() {
    await this.context.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** What axe finds on the page, in lines. */
export async function barriers(page) {
  // Injected past the page's policy, which lets no such script in.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }),
  );
  return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}
