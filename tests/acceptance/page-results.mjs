// What the page of a processor's results shows, page by page: page-results.mjs BASE_URL PROCESSOR RECORDS
//
// Waits until the page has read so many records, then prints each row as a line of JSON.
import { Browser } from "../clients/browser/browser.js";

const CAUGHT_UP_MS = 300_000;

const [base, processor, records] = process.argv.slice(2);
const browser = await Browser.open(base);
try {
  const page = await browser.page(`processors/${encodeURIComponent(processor)}/results`);
  await page.locator(`[data-results="caught-up"][data-records="${records}"]`).waitFor({ timeout: CAUGHT_UP_MS });
  const pages = Number(await page.locator("[data-pages]").getAttribute("data-pages"));
  for (let number = 1; number <= pages; number += 1) {
    await page.locator(`[data-page="${number}"][data-pages="${pages}"]`).waitFor();
    const rows = await page.$$eval("tr[data-result]", (found) =>
      found.map(({ dataset }) => ({
        key: dataset.key,
        start: Number(dataset.windowStart),
        end: Number(dataset.windowEnd),
        kind: dataset.kind,
        value: dataset.value,
      })),
    );
    process.stdout.write(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    if (number < pages) await page.getByRole("button", { name: "Next page" }).click();
  }
  const findings = browser.findings();
  if (findings.length > 0) throw new Error(findings.join("\n"));
} finally {
  await browser.close();
}
