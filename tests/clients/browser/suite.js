// The UI in a browser, against a real node: suite.js BASE_URL [PART-OF-A-NAME…]. Ends with `N passed, M failed`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Browser, barriers, WAIT_MS } from "./browser.js";
import { component, Door } from "./door.js";

const [base, ...wanted] = process.argv.slice(2);
const door = new Door(base);
const GREATEST = "9223372036854775807";
const cases = [];
const test = (name, run) => cases.push([name, run]);
const row = (page, id) => page.locator(`[role=row][data-id="${id}"]`);

/** The lines that the grid has in sight once there is one. */
async function lines(page) {
  await page.locator("[role=row][data-id]").first().waitFor();
  return page.locator("[role=row][data-id]").evaluateAll((rows) => rows.map((line) => line.dataset.id));
}

test("a_topic_is_made_in_the_page_and_deleted_by_its_typed_name", async (browser) => {
  const page = await browser.page("topics");
  const name = `made-in-the-page-${crypto.randomUUID().slice(0, 8)}`;
  await page.getByRole("button", { name: "Create topic" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Partitions").fill("3");
  await page.getByLabel("Configuration").fill("cleanup.policy=compact");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.waitForURL(`**/ui/topics/${name}/messages`);
  await page.getByText("There are no messages here.").waitFor();
  await page.getByRole("link", { name: "Partitions" }).click();
  assert.equal(await page.locator("tr[data-partition]").count(), 3);
  await page.getByRole("link", { name: "Configuration" }).click();
  await page.getByLabel("Filter by key").fill("cleanup.policy");
  await page.getByRole("row", { name: /cleanup\.policy.*compact.*dynamic topic config/ }).waitFor();

  await page.getByRole("button", { name: "Delete topic" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Type .* to confirm/).fill("something else");
  assert.ok(await dialog.getByRole("button", { name: "Delete topic" }).isDisabled());
  await dialog.getByLabel(/Type .* to confirm/).fill(name);
  await dialog.getByRole("button", { name: "Delete topic" }).click();
  await page.waitForURL("**/ui/topics");
  await page.getByRole("heading", { name: "Topics" }).waitFor();
  await page.locator(`[data-topic="${name}"]`).waitFor({ state: "detached" });
});

test("what_the_node_refuses_is_told_in_its_words", async (browser) => {
  const taken = await door.topic();
  const page = await browser.page("topics");
  await page.getByRole("button", { name: "Create topic" }).click();
  await page.getByLabel("Name", { exact: true }).fill(taken);
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const alert = page.getByRole("alert");
  await alert.getByText("topic_already_exists", { exact: true }).waitFor();
  await page.goto(`${base}/ui/topics/there-is-no-such-topic/messages`);
  await page.getByRole("alert").getByText("unknown_topic_or_partition", { exact: true }).waitFor();
});

test("the_greatest_64_bit_number_is_shown_exactly", async (browser) => {
  const topic = await door.topic();
  await door.write(topic, `{"key":"${GREATEST}","value":{"n":${GREATEST},"x":0.10}}`);
  const page = await browser.page(`topics/${topic}/messages`);
  await row(page, "0:0").getByText(`{"n":${GREATEST},"x":0.10}`).waitFor();
  await row(page, "0:0").click();
  const value = page.locator('[data-payload="value"]');
  await value.waitFor();
  assert.equal(await value.textContent(), `{\n  "n": ${GREATEST},\n  "x": 0.10\n}`);
  assert.equal(await page.locator('[data-payload="key"]').textContent(), GREATEST);
});

test("a_message_is_written_by_the_form_and_opens_by_its_address", async (browser) => {
  const topic = await door.topic(3);
  const page = await browser.page(`topics/${topic}/messages`);
  await page.getByRole("button", { name: "Produce" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Key", { exact: true }).fill("k");
  await dialog.getByLabel("Value", { exact: true }).fill(`{"n": ${GREATEST}`);
  assert.ok(await dialog.getByRole("button", { name: "Write message" }).isDisabled());
  await dialog.getByLabel("Value", { exact: true }).fill(`{"n": ${GREATEST}}`);
  await dialog.getByLabel("Headers").fill("trace: 7");
  await dialog.getByLabel("Partition").selectOption("2");
  await dialog.getByRole("button", { name: "Write message" }).click();
  await dialog.getByText("Written to partition 2 at offset 0").waitFor();
  await dialog.getByLabel("tombstone (null value)").check();
  await dialog.getByRole("button", { name: "Write message" }).click();
  await dialog.getByText("Written to partition 2 at offset 1").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await row(page, "2:1").getByText("tombstone").waitFor();
  await row(page, "2:0").click();
  await page.waitForURL(/open=2%3A0/);
  await page.reload();
  assert.equal(await page.locator('[data-payload="value"]').textContent(), `{\n  "n": ${GREATEST}\n}`);
  await page.getByRole("cell", { name: "trace" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator('[data-payload="value"]').waitFor({ state: "detached" });
});

test("messages_are_found_by_offset_and_by_time_and_page_by_page", async (browser) => {
  const topic = await door.topic();
  const first = Date.UTC(2001, 0, 14, 21, 55, 0, 0);
  const records = Array.from({ length: 120 }, (_, n) => `{"value":${n},"timestamp":${first + n * 1000}}`);
  await door.write(topic, ...records);
  const page = await browser.page(`topics/${topic}/messages?zone=utc&limit=20`);
  assert.equal((await lines(page))[0], "0:100", "the last ones at first");

  await page.getByLabel("From").selectOption("offset");
  await page.getByLabel("Offset", { exact: true }).fill("40");
  await page.getByRole("button", { name: "Go" }).click();
  await row(page, "0:40").waitFor();
  await row(page, "0:40").getByText("2001-01-14 21:55:40.000Z").waitFor();
  assert.equal((await lines(page))[0], "0:40");
  await page.getByRole("button", { name: "Next page" }).click();
  await row(page, "0:60").waitFor();
  await page.getByRole("button", { name: "Previous page" }).click();
  await row(page, "0:40").waitFor();

  await page.getByLabel("From").selectOption("time");
  await page.getByLabel("Time (UTC)").fill("2001-01-14T21:56:30.500");
  await page.getByRole("button", { name: "Go" }).click();
  await row(page, "0:91").waitFor();
  assert.equal((await lines(page))[0], "0:91");
  await page.getByLabel("Times in").selectOption("local");
  await row(page, "0:91").getByText("2001-01-14 22:56:31.000+01:00").waitFor();
  await page.getByLabel("From").selectOption("earliest");
  await row(page, "0:0").waitFor();

  await page.goto(`${base}/ui/topics/${topic}/messages?from=offset:5000&partition=0`);
  await page.getByRole("alert").getByText("offset_out_of_range", { exact: true }).waitFor();
});

test("the_live_end_shows_what_comes_and_stands_still_while_it_is_paused", async (browser) => {
  const topic = await door.topic(2);
  await door.write(topic, '{"value":"before"}');
  const page = await browser.page(`topics/${topic}/messages?from=live`);
  await page.locator('[data-stream="open"]').waitFor();
  await page.getByText("Waiting for the next message.").waitFor();
  await door.write(topic, `{"value":{"n":${GREATEST}},"partition":1}`);
  await row(page, "1:0").getByText(`{"n":${GREATEST}}`).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await door.write(topic, '{"value":2,"partition":1}', '{"value":3,"partition":1}');
  await page.getByText("Paused: 2 wait").waitFor();
  assert.deepEqual(await lines(page), ["1:0"]);
  await page.getByRole("button", { name: "Resume" }).click();
  await row(page, "1:2").waitFor();
  assert.deepEqual(await lines(page), ["1:2", "1:1", "1:0"]);
});

test("a_bound_serde_decodes_what_is_shown", async (browser) => {
  const topic = await door.topic();
  const { sha256 } = await door.upload("json-binary-serde");
  await door.call("PUT", `/api/v1/topics/${topic}/plugins`, JSON.stringify({ value_serde: sha256 }));
  await door.write(topic, '{"key":"a","value":{"decoded":[1,true,"x"]}}');
  const page = await browser.page(`topics/${topic}/messages`);
  await page.locator('[data-role="value_serde"]').waitFor();
  await row(page, "0:0").getByText('{"decoded":[1,true,"x"]}').waitFor();
  await page.getByLabel("Show as").selectOption("base64");
  const stored = JSON.parse(await door.call("GET", `/api/v1/topics/${topic}/records?value_format=base64`)).records[0].value;
  assert.notEqual(Buffer.from(stored, "base64").toString(), '{"decoded":[1,true,"x"]}', "the serde stores another form");
  await row(page, "0:0").getByText(stored).waitFor();
});

test("a_module_is_dropped_deployed_and_watched", async (browser) => {
  const topic = await door.topic(1);
  const name = `watched-${crypto.randomUUID().slice(0, 8)}`;
  const page = await browser.page("processors");
  const bytes = readFileSync(component("delay-statistics")).toString("base64");
  const dropped = await page.evaluateHandle((base64) => {
    const transfer = new DataTransfer();
    const content = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    transfer.items.add(new File([content], "delay-statistics.wasm", { type: "application/wasm" }));
    return transfer;
  }, bytes);
  await page.dispatchEvent('[data-drop="module"]', "drop", { dataTransfer: dropped });
  await page.getByText(/Uploaded delay-statistics/).waitFor();
  const card = page.getByRole("article", { name: "Module delay-statistics" });
  await card.getByText("value_field").waitFor();
  await card.getByText("default: delay").waitFor();
  assert.match(await card.textContent(), /delay-statistics 0\.1\.0.*aggregator.*(KiB|MiB)/);

  await card.getByRole("button", { name: "Deploy", exact: true }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Processor name").fill(name);
  await form.getByLabel("Input topic").fill("there-is-no-such-topic");
  await form.getByLabel("Output topic").fill(`${name}-out`);
  await form.getByLabel("Window").selectOption("hopping");
  await form.getByLabel("Size (ms)").fill("3600000");
  await form.getByText("= 1 h").waitFor();
  await form.getByRole("button", { name: "Deploy processor" }).click();
  await form.getByText("From 1 to the window's size").waitFor();
  assert.deepEqual(await barriers(page), []);
  await form.getByLabel("Advance (ms)").fill("900000");
  await form.getByRole("button", { name: "Deploy processor" }).click();
  await form.getByRole("alert").first().waitFor();
  await form.getByLabel("Input topic").fill(topic);
  await form.getByRole("button", { name: "Deploy processor" }).click();
  await page.waitForURL(`**/ui/processors/${name}`);
  await page.locator('[data-task="0"] [data-state="running"]').waitFor();
  assert.deepEqual(await barriers(page), []);

  const hour = 3_600_000;
  const value = (key, delay, timestamp) => `{"key":"${key}","value":{"delay":${delay}},"timestamp":${timestamp}}`;
  await door.write(topic, value("JFK", 10, hour), value("JFK", 20, hour), value("LAX", 5, hour));
  await page.locator('[data-task="0"][data-position="3"]').waitFor();

  await page.getByRole("link", { name: "Results" }).click();
  const result = (key, start) =>
    page.locator(`tr[data-result][data-key="${key}"][data-window-start="${start}"][data-window-end="${start + hour}"]`);
  await page.locator('[data-results="caught-up"]').waitFor();
  await result("JFK", hour).waitFor();
  assert.equal(await page.locator("tr[data-result]").count(), 8, "four windows of two keys");
  const before = JSON.parse(await result("JFK", hour).getAttribute("data-value"));
  assert.equal(before.count, 2);
  await door.write(topic, value("JFK", 60, hour));
  await page.locator(`tr[data-result][data-key="JFK"][data-window-start="${hour}"][data-value*='"count":3']`).waitFor();
  assert.equal(await result("JFK", hour).getAttribute("data-kind"), "update");
  await result("JFK", hour).getByRole("button", { name: "JFK" }).click();
  await page.locator("canvas").waitFor();
  await page.getByLabel("Number").selectOption("count");
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("button", { name: "Close the chart" }).click();

  const airports = Array.from({ length: 30 }, (_, n) => value(`A${n}`, n, hour));
  await door.write(topic, ...airports);
  await page.locator('[data-windows="128"]').waitFor();
  const seen = () => page.locator("tr[data-result]").evaluateAll((rows) => rows.map((one) => `${one.dataset.key} ${one.dataset.windowStart}`));
  const all = await seen();
  await page.getByRole("button", { name: "Next page" }).click();
  await page.locator('[data-page="2"]').waitFor();
  all.push(...(await seen()));
  assert.equal(new Set(all).size, 128, "every window is on one page");
  assert.ok(await page.getByRole("button", { name: "Next page" }).isDisabled());
  await page.getByRole("button", { name: "Previous page" }).click();
  await page.locator('[data-page="1"]').waitFor();

  await page.getByRole("button", { name: "Pause", exact: true }).first().click();
  await page.locator('h1 ~ [data-state="paused"]').waitFor();
  await page.locator("h1 ~ div").getByRole("button", { name: "Resume" }).click();
  await page.locator('h1 ~ [data-state="running"]').waitFor();
  await page.getByRole("button", { name: "Delete processor" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/Type .* to confirm/).fill(name);
  await dialog.getByRole("button", { name: "Delete processor" }).click();
  await page.waitForURL("**/ui/processors");
  await page.locator(`[data-processor="${name}"]`).waitFor({ state: "detached" });
});

test("a_module_that_breaks_shows_why_in_its_log", async (browser) => {
  const topic = await door.topic(1);
  const name = `breaks-${crypto.randomUUID().slice(0, 8)}`;
  const { sha256 } = await door.upload("evil");
  const spec = {
    module: sha256,
    input: topic,
    from: "earliest",
    output: `${name}-out`,
    window: { type: "tumbling", size_ms: 60_000, grace_ms: 0 },
    emit: "update",
  };
  await door.call("PUT", `/api/v1/processors/${name}`, JSON.stringify(spec));
  const page = await browser.page(`processors/${name}/logs`);
  await page.locator('[data-stream="open"]').waitFor();
  await door.call(
    "POST",
    `/api/v1/topics/${topic}/records?value_format=text`,
    '{"records":[{"key":"k","value":"trap so that it is logged"}]}',
  );
  const entry = page.locator('tr[data-level="error"]').first();
  await entry.getByText("asked to: so that it is logged").waitFor();
  await page.getByLabel("Level").selectOption("error");
  await page.waitForURL("**/logs?level=error");
  await entry.waitFor();
  assert.deepEqual(await barriers(page), []);
  await page.getByRole("link", { name: "Status" }).click();
  await page.locator('[data-task="0"][data-position="1"]').waitFor();
  await door.call("DELETE", `/api/v1/processors/${name}`);
});

test("keys_lead_to_every_page", async (browser) => {
  const topic = await door.topic();
  await door.write(topic, '{"value":1}', '{"value":2}');
  const page = await browser.page("");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.locator("tr[data-broker]").first().waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForURL("**/ui/topics");
  await page.getByRole("heading", { name: "Topics" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(topic);
  await page.waitForURL(`**/ui/topics?filter=${topic}`);
  await page.locator(`[data-topic="${topic}"] a`).click();
  await row(page, "0:1").waitFor();
  await row(page, "0:0").focus();
  await page.keyboard.press("j");
  await page.locator('[role=row][data-id="0:1"]:focus').waitFor();
  await page.keyboard.press("Enter");
  await page.locator('[data-payload="value"]').waitFor();
  await page.keyboard.press("Escape");
  await page.locator('[data-payload="value"]').waitFor({ state: "detached" });
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
});

test("no_page_has_a_barrier_in_light_or_dark", async (browser) => {
  const topic = await door.topic(2);
  await door.write(topic, '{"key":"k","value":{"a":1},"headers":[{"name":"h","value":"v"}]}', '{"key":"k","value":null}');
  const { records } = JSON.parse(await door.call("GET", `/api/v1/topics/${topic}/records`));
  const place = `${records[0].partition}:${records[0].offset}`;
  const opened = (role, name) => (page) => page.getByRole(role, { name }).first();
  const pages = [
    ["", (page) => page.locator("tr[data-broker]").first()],
    ["topics", (page) => page.locator(`[data-topic="${topic}"]`)],
    ["topics?filter=nothing-is-called-so", (page) => page.getByText(/No topic's name/)],
    [`topics/${topic}/messages?open=${place}`, (page) => page.locator('[data-payload="value"]')],
    [`topics/${topic}/messages?from=live`, (page) => page.locator('[data-stream="open"]')],
    [`topics/${topic}/partitions`, (page) => page.locator("tr[data-partition]").first()],
    [`topics/${topic}/configs`, opened("row", /cleanup\.policy/)],
    ["topics/there-is-no-such-topic/messages", opened("alert", "")],
    ["processors", opened("region", "Modules")],
    ["nowhere", (page) => page.getByRole("heading", { name: "There is no such page" })],
  ];
  const found = [];
  for (const theme of ["light", "dark"]) {
    for (const [path, seen] of pages) {
      const page = await browser.page(path);
      await page.emulateMedia({ colorScheme: theme });
      await seen(page).waitFor();
      found.push(...(await barriers(page)).map((line) => `${theme} ${path}: ${line}`));
      await page.close();
    }
    const page = await browser.page(`topics/${topic}/messages`);
    await page.emulateMedia({ colorScheme: theme });
    await page.getByRole("button", { name: "Produce" }).click();
    await page.getByRole("dialog").waitFor();
    found.push(...(await barriers(page)).map((line) => `${theme} produce: ${line}`));
    await page.close();
  }
  assert.deepEqual(found, []);
});

test("the_page_is_small_kept_and_guarded", async () => {
  const page = await fetch(`${base}/ui/processors/x/results`, { headers: { "accept-encoding": "gzip" } });
  const text = await page.text();
  assert.equal(page.headers.get("cache-control"), "no-cache");
  assert.match(page.headers.get("content-security-policy"), /^default-src 'self';/);
  assert.match(text, /<base href="\/ui\/"/);
  const script = text.match(/src="\.\/(assets\/[^"]+\.js)"/)[1];
  const loaded = await fetch(`${base}/ui/${script}`, { headers: { "accept-encoding": "gzip" } });
  assert.match(loaded.headers.get("cache-control"), /immutable/);
  assert.equal(loaded.headers.get("content-encoding"), "gzip");
  assert.ok(Number(loaded.headers.get("content-length")) < 180 * 1024);
  const again = await fetch(`${base}/ui/${script}`, {
    headers: { "accept-encoding": "gzip", "if-none-match": loaded.headers.get("etag") },
  });
  assert.equal(again.status, 304);
  assert.equal((await fetch(`${base}/ui/assets/gone.js`)).status, 404);
  const root = await fetch(`${base}/`, { redirect: "manual" });
  assert.deepEqual([root.status, root.headers.get("location")], [307, "/ui/"]);
});

async function run([name, body], browser) {
  // A case that hangs in spite of the limits of what it waits for.
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("the case takes too long")), WAIT_MS * 4);
  });
  try {
    await Promise.race([body(browser), limit]);
    assert.deepEqual(browser.findings(), []);
    console.log(`ok   ${name}`);
    return true;
  } catch (error) {
    console.log(`FAIL ${name}\n${error.stack}`);
    for (const finding of browser.findings()) console.log(`     ${finding}`);
    return false;
  } finally {
    clearTimeout(timer);
  }
}

let passed = 0;
let failed = 0;
for (const one of cases) {
  if (wanted.length > 0 && !wanted.some((part) => one[0].includes(part))) continue;
  const browser = await Browser.open(base);
  if (await run(one, browser)) passed += 1;
  else failed += 1;
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
