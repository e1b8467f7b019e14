// The console in a real Chromium.
// usage: node check.mjs DATA_DIR    (NODE_MODULES and TAXIMETER_BINARY as run sets them)

import assert from "node:assert/strict";

import { findings } from "./accessible.mjs";
import { browser, demo, rides } from "./browser.mjs";

const PAGE_BYTES_MAX = 100 * 1024;
const [data] = process.argv.slice(2);
const taxi = await demo(data, 4);
const { admin } = taxi;
const chromium = await browser();
let checks = 0;

const json = async (path) => (await fetch(new URL(path, admin))).json();
const equal = (shown, told, what) => {
  assert.equal(shown, told, what);
  checks += 1;
};

/** A page of which everything odd is kept. */
const open = async (options) => {
  const window = await chromium.newContext(options);
  const page = await window.newPage();
  const odd = [];
  page.on("console", (message) => odd.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => odd.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== admin) odd.push(`asks ${request.url()}`);
  });
  return { page, odd, close: () => window.close() };
};

const settled = async () => {
  while ((await json("/api/v1/status")).store.pending_entries > 0) await new Promise((wake) => setTimeout(wake, 50));
};

const paths = async () => {
  const { records } = await json("/api/v1/records?limit=200");
  const streamed = records.find((record) => record.stream && record.end === "complete");
  const left = records.find((record) => record.end === "client_left");
  const { sessions: [task] } = await json("/api/v1/sessions");
  const session = `/session?name=${task.session}`;
  return [
    "/", "/?span=day&by=model", "/?span=week&zone=Asia%2FTokyo", "/live", "/requests", "/requests?tenant=acme",
    `/requests/${streamed.id}`, `/requests/${left.id}`, "/usage", "/usage?by=label%3Ateam&span=week",
    "/usage?by=upstream,model,tenant&tenant=globex", "/usage?span=last-month", "/bill", "/bill?tenant=globex", "/prices",
    "/prices?model=o4-mini", "/upstreams", "/fleet", "/fleet/history", "/fleet/history?show=hosts&last=6h&compare=day",
    "/refusals", "/refusals?reason=unknown_route", "/refusals?tenant=nobody",
    "/sessions", "/sessions?span=day&top=latest&tenant=initech&zone=Asia%2FTokyo", "/sessions?span=last-month", session,
    `${session}&tenant=${task.tenant}&agent=explore-tests`, `${session}&page=1`, `/requests/${task.first_id}`,
  ];
};

/** Every page, in each width and light: it loads, asks nobody else, and everybody can use it. */
const everyPage = async () => {
  for (const width of [1280, 390]) {
    for (const colorScheme of ["light", "dark"]) {
      const { page, odd, close } = await open({ viewport: { width, height: 900 }, colorScheme });
      for (const path of await paths()) {
        const answer = await page.goto(admin + path, { waitUntil: "load" });
        const what = `${path} at ${width} px, ${colorScheme}`;
        equal(answer.status(), 200, what);
        assert.ok((await answer.body()).length <= PAGE_BYTES_MAX, what);
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
        equal((await page.evaluate(findings)).join("\n"), "", what);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(overflow <= 0, `${what} is ${overflow} px too wide`);
        equal(odd.join("\n"), "", what);
      }
      await close();
    }
  }
};

const value = (page, selector) => page.locator(`${selector} data`).first().getAttribute("value");

/** Figures are the API's. */
const figures = async () => {
  const { page, close } = await open();
  await page.goto(`${admin}/`);
  const asked = await page.locator("[data-api=usage]").getAttribute("href");
  const usage = await json(asked);
  const by = await json(asked.replace(/by=[^&]*/, "by=tenant"));
  equal(await value(page, "[data-total=billed]"), usage.total.billed_cost, "billed");
  equal(await value(page, "[data-total=requests]"), String(usage.total.requests.count), "requests");
  equal(await value(page, "[data-total=input]"), String(usage.total.requests.input_tokens), "input");
  equal(await value(page, "[data-total=output]"), String(usage.total.requests.output_tokens), "output");
  equal(await value(page, "[data-source=reported]"), String(usage.total.requests.reported), "reported");
  equal(await value(page, "[data-source=counted]"), String(usage.total.requests.counted), "counted");
  for (const line of by.lines) {
    const row = page.getByRole("region", { name: "Tenants" }).getByRole("row", { name: line.keys.tenant });
    const shown = await row.locator("data").evaluateAll((all) => all.map((one) => one.value));
    const { requests } = line;
    const told = [line.contracted_cost, requests.count, requests.input_tokens, requests.output_tokens];
    equal(shown.join(), told.join(), line.keys.tenant);
  }
  await page.goto(`${admin}/bill`);
  const bill = await json(await page.locator("[data-api=usage]").getAttribute("href"));
  equal(await value(page, "[data-total=billed]"), bill.total.billed_cost, "the bill");
  const [download] = await Promise.all([
    page.waitForEvent("download"), page.getByRole("link", { name: /CSV/ }).click(),
  ]);
  assert.ok((await (await fetch(download.url())).text()).includes("BilledCost"), "a FOCUS file");
  await page.goto(`${admin}/requests`);
  const { records } = await json("/api/v1/records?limit=50");
  const links = await page.locator("tbody th a").evaluateAll((all) => all.map((link) => link.pathname));
  equal(links.join(), records.map((record) => `/requests/${record.id}`).join(), "requests");
  const { record } = await json(`/api/v1/records/${records.at(-1).id}`);
  await page.goto(`${admin}/requests/${record.id}`);
  const { stages, duration } = record.timing;
  const timeline = page.getByRole("region", { name: "Timeline" }).locator("[data-stage]");
  equal(await timeline.count(), Object.keys(stages).length, "stages");
  let end = 0;
  for (const row of await timeline.all()) {
    const word = await row.getAttribute("data-stage");
    const [from, to, took] = await row.locator("data").evaluateAll((all) => all.map((one) => Number(one.value)));
    equal(took, stages[word], word);
    equal(from, end, `${word} begins where the one before ended`);
    end = to;
  }
  const whole = Number(await value(page, "[data-total=time]"));
  equal(whole, end, "stages add up");
  assert.ok(Math.abs(whole - stages.settle - duration) < 2e-6, "to the whole");
  const lines = page.getByRole("region", { name: "Price" }).locator("tbody tr");
  equal(await lines.count(), record.cost.lines.length, "price lines");
  for (const [index, line] of record.cost.lines.entries()) {
    const shown = await lines.nth(index).locator("data").evaluateAll((all) => all.map((one) => Number(one.value)));
    const told = [Number(line.tokens ?? line.quantity), Number(line.unit_price), Number(line.amount)];
    equal(shown.join(), told.join(), line.meter);
  }
  await close();
};

/** Usage by key and label is the API's, and each line leads to its requests. */
const usage = async () => {
  const { page, odd, close } = await open({ javaScriptEnabled: false });
  await page.goto(`${admin}/`);
  await page.getByRole("link", { name: "Usage" }).click();
  for (const by of ["by key", "by label team", "by model", "by upstream"]) {
    await page.getByRole("navigation", { name: "Split by" }).getByRole("link", { name: by, exact: true }).click();
    const told = await json(await page.locator("[data-api=usage]").getAttribute("href"));
    const rows = page.locator("tbody tr");
    equal(await rows.count(), told.lines.length, by);
    for (const [index, line] of told.lines.entries()) {
      const shown = await rows.nth(index).locator("data").evaluateAll((all) => all.map((one) => one.value));
      const { count, input_tokens, cache_read_input_tokens, output_tokens, unknown_cost } = line.requests;
      const sums = [line.contracted_cost, count, input_tokens, cache_read_input_tokens, output_tokens, unknown_cost];
      equal(shown.join(), sums.filter((sum) => sum !== null).join(), `${by} ${index}`);
    }
  }
  await page.getByRole("navigation", { name: "Split by" }).getByRole("link", { name: "by label team" }).click();
  await page.getByRole("link", { name: "search", exact: true }).click();
  const tenants = await page.locator("tbody td:nth-child(2)").allTextContents();
  equal([...new Set(tenants)].join(), "globex", "the requests of a team");
  equal(odd.join("\n"), "", "usage");
  await close();
};

/** Why the task of the demo's agent cost what it did: the API's numbers, in the first screen, and each with its requests. */
const sessions = async () => {
  const { page, odd, close } = await open({ javaScriptEnabled: false, viewport: { width: 1280, height: 800 } });
  await page.goto(`${admin}/`);
  await page.getByRole("link", { name: "Sessions" }).click();
  const listed = await json(await page.locator("[data-api=sessions]").getAttribute("href"));
  equal(await value(page, "[data-total=cost]"), listed.total.cost, "all sessions");
  await page.locator("tbody th a").first().click();
  const [{ session, tenant }] = listed.sessions;
  const { sessions: [told] } = await json(`/api/v1/sessions/${session}?tenant=${tenant}`);
  equal(told.agents.map((agent) => agent.agent).join(), "root,explore-tests", "the agents of the demo");
  equal(told.waste.map((waste) => waste.kind).join(), "retry,compaction", "its waste");
  const sums = { cost: told.cost, requests: told.requests, input: told.input_tokens, output: told.output_tokens };
  for (const [mark, sum] of Object.entries(sums)) {
    equal(await value(page, `[data-total=${mark}]`), String(sum), mark);
  }
  for (const mark of ["[data-dearest=agent]", "[data-dearest=turn]", "[data-total=wasted]"]) {
    const box = await page.locator(mark).boundingBox();
    assert.ok(box.y + box.height < 800, `${mark} is in the first screen`);
    checks += 1;
  }
  for (const turn of told.turns) {
    const row = page.locator(`[data-turn="${turn.number}"]`);
    equal(await row.locator("td data").first().getAttribute("value"), turn.cost, `turn ${turn.number}`);
    const links = await row.locator("a").evaluateAll((all) => all.map((link) => link.pathname));
    // Of many requests the first ones have a link each, and there is one to all.
    const own = turn.request_ids.slice(0, 4).map((id) => `/requests/${id}`);
    const all = turn.request_ids.length > own.length ? ["/requests"] : [];
    equal(links.join(), [...own, ...all].join(), `requests of turn ${turn.number}`);
  }
  const agents = page.getByRole("region", { name: "Agents" }).locator("tbody tr");
  for (const [index, agent] of told.agents.entries()) {
    equal(await agents.nth(index).locator("td data").first().getAttribute("value"), agent.cost, agent.agent);
  }
  await page.locator("[data-waste=retried] a").first().click();
  equal(new URL(page.url()).pathname, `/requests/${told.waste[0].requests[0].id}`, "what was retried");
  await page.getByRole("region", { name: "Session" }).getByRole("link").click();
  equal(await value(page, "[data-total=cost]"), told.cost, "back in the session");
  equal(odd.join("\n"), "", "sessions");
  await close();
};

/** A request that begins is seen without loading the page again, and not while it is paused. */
const live = async () => {
  const { page, odd, close } = await open();
  await page.goto(`${admin}/live`);
  await page.getByText("No request is running.").waitFor();
  const running = rides(taxi);
  await page.locator("#live-rows tr", { hasText: "generating" }).waitFor();
  const cells = await page.locator("#live-rows tr").first().locator("th, td").allTextContents();
  equal(cells.slice(0, 2).join(), "acme,gpt-5.4-mini", "whose it is");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("paused").waitFor();
  await running.stop();
  equal(await page.locator("#live-rows tr").count(), 1, "what is paused stays");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("No request is running.").waitFor();
  equal(odd.join("\n"), "", "the live page");
  await close();
};

/** Requests that are refused: those of an address that nobody serves, and those without a key. */
const REFUSED = { unknown_route: 3, missing_api_key: 2 };

const refuse = async () => {
  for (let asked = 0; asked < REFUSED.unknown_route; asked += 1) {
    equal((await fetch(`${taxi.listen}/nowhere`)).status, 404, "nowhere");
  }
  for (let asked = 0; asked < REFUSED.missing_api_key; asked += 1) {
    const answer = await fetch(`${taxi.listen}/v1/chat/completions`, {
      method: "POST", headers: { "content-type": "application/json" }, body: '{"model":"gpt-5.4-mini","messages":[]}',
    });
    equal(answer.status, 401, "without a key");
  }
};

/** What was refused is counted, by reason, and the last ones are shown. */
const refusals = async () => {
  const { page, odd, close } = await open();
  await page.goto(`${admin}/refusals`);
  const told = await json("/api/v1/refusals");
  equal(await page.locator("caption data").first().getAttribute("value"), String(told.total), "refusals");
  for (const [reason, requests] of Object.entries(REFUSED)) {
    const row = page.locator("table").first().locator("tbody tr", { hasText: reason });
    equal(await row.locator("data").last().getAttribute("value"), String(requests), reason);
    const line = told.counts.find((count) => count.reason === reason);
    equal(String(line.requests), String(requests), `${reason} by the API`);
    const last = page.locator("table").nth(1).locator("tbody tr", { hasText: reason });
    equal(await last.count(), requests, `the last of ${reason}`);
  }
  await page.goto(`${admin}/refusals?reason=unknown_route`);
  equal(await page.locator("tbody tr", { hasText: "missing_api_key" }).count(), 0, "only what was asked for");
  equal(odd.join("\n"), "", "the page of refusals");
  await close();
};

/** Without a script all but the movement is there. */
const withoutScript = async () => {
  const { page, odd, close } = await open({ javaScriptEnabled: false });
  const answer = await page.goto(`${admin}/?by=model`);
  assert.match(await answer.text(), /data-total="billed"><data value="0\.\d+">/);
  await page.getByRole("link", { name: "by upstream" }).click();
  assert.match(page.url(), /by=upstream/);
  await page.locator("summary").first().click();
  assert.ok(await page.locator("details table").first().isVisible(), "the numbers of a chart");
  const running = rides(taxi);
  await page.goto(`${admin}/live`);
  await page.locator("#live-rows tr").waitFor({ timeout: 15_000 });
  await running.stop();
  equal(odd.join("\n"), "", "without a script");
  await close();
};

/** By keyboard: first past the navigation, then everywhere, and one sees where one is. */
const keyboard = async () => {
  const { page, close } = await open();
  await page.goto(`${admin}/requests`);
  await page.keyboard.press("Tab");
  equal(await page.evaluate(() => document.activeElement.className), "skip", "first");
  assert.ok((await page.locator(".skip").boundingBox()).x >= 0, "it is seen");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  equal(await page.evaluate(() => document.activeElement.id), "tenant", "behind the navigation");
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  equal(outline, "solid", "where one is");
  await page.keyboard.type("globex");
  await page.keyboard.press("Enter");
  await page.waitForURL(/tenant=globex/);
  const tenants = await page.locator("tbody td:nth-child(2)").allTextContents();
  equal([...new Set(tenants)].join(), "globex", "what was found");
  await close();
};

try {
  await settled();
  await refuse();
  for (const check of [everyPage, figures, usage, sessions, refusals, live, withoutScript, keyboard]) {
    await check();
    await settled();
  }
  console.log(`console: ${checks} checks passed`);
} finally {
  await chromium.close();
  await taxi.stop();
}
