// What the page of a processor's results shows, page by page: page-results.mjs BASE_URL PROCESSOR RECORDS
//
// Waits until the page has read so many records, then prints each row as a line of JSON.
import { Browser, WAIT_MS } from "../clients/browser/browser.js";

const CAUGHT_UP_MS = 300_000;
/** How many pages are turned before what they showed is handed over. */
const PAGES_PER_CALL = 50;

const [base, processor, records] = process.argv.slice(2);
const browser = await Browser.open(base);
try {
  const page = await browser.page(`processors/${encodeURIComponent(processor)}/results`);
  await page.locator(`[data-results="caught-up"][data-records="${records}"]`).waitFor({ timeout: CAUGHT_UP_MS });
  const pages = Number(await page.locator("[data-pages]").getAttribute("data-pages"));
  for (let from = 1; from <= pages; from += PAGES_PER_CALL) {
    // The first page of each turn is turned to as a person does it. A hand takes a tenth of a second for that, so the
    // others are turned from within, one after the other all the same.
    if (from > 1) await page.getByRole("button", { name: "Next page" }).click();
    const until = Math.min(from + PAGES_PER_CALL - 1, pages);
    const rows = await page.evaluate(shown, { from, until, pages, waitMs: WAIT_MS });
    process.stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  }
  const findings = browser.findings();
  if (findings.length > 0) throw new Error(findings.join("\n"));
} finally {
  await browser.close();
}

/** Runs in the page: the rows of these pages, each read when it is shown. */
async function shown({ from, until, pages, waitMs }) {
  const rows = [];
  for (let number = from; number <= until; number += 1) {
    await isShown(`[data-page="${number}"][data-pages="${pages}"]`);
    for (const { dataset } of document.querySelectorAll("tr[data-result]")) {
      rows.push({
        key: dataset.key,
        start: Number(dataset.windowStart),
        end: Number(dataset.windowEnd),
        kind: dataset.kind,
        value: dataset.value,
      });
    }
    if (number < until) nextPage().click();
  }
  return rows;

  function nextPage() {
    return [...document.querySelectorAll("button")].find((button) => button.textContent === "Next page");
  }

  function isShown(selector) {
    if (document.querySelector(selector) !== null) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${selector} does not appear`)), waitMs);
      const observer = new MutationObserver(() => {
        if (document.querySelector(selector) === null) return;
        clearTimeout(timer);
        observer.disconnect();
        resolve();
      });
      observer.observe(document.body, { subtree: true, childList: true, attributes: true });
    });
  }
}
