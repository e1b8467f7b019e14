// Pictures of the console for the documentation.
// usage: node pictures.mjs DATA_DIR FOLDER    (NODE_MODULES and TAXIMETER_BINARY as run sets them)

import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { browser, demo, rides } from "./browser.mjs";

const [data, folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const taxi = await demo(data, 4);
const chromium = await browser();

const picture = async (name, path, options, fullPage = false) => {
  const window = await chromium.newContext(options);
  const page = await window.newPage();
  await page.goto(taxi.admin + path);
  if (path === "/live") await page.locator("#live-rows tr", { hasText: "generating" }).nth(3).waitFor();
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
  await window.close();
};

const wide = (colorScheme) => ({ viewport: { width: 1100, height: 760 }, colorScheme });
const narrow = (colorScheme) => ({ viewport: { width: 390, height: 760 }, colorScheme });
try {
  const { records } = await (await fetch(`${taxi.admin}/api/v1/records?limit=200`)).json();
  const { sessions: [task] } = await (await fetch(`${taxi.admin}/api/v1/sessions?top=latest`)).json();
  const record = records.find((one) => one.stream && one.usage.cache_read_input_tokens > 0);
  await picture("overview", "/", wide("light"));
  await picture("overview-dark", "/", wide("dark"));
  await picture("overview-narrow", "/", narrow("light"));
  await picture("request", `/requests/${record.id}`, wide("light"));
  await picture("session", `/session?name=${task.session}`, { ...wide("light"), viewport: { width: 1100, height: 860 } });
  await picture("usage", "/usage?by=tenant,model", wide("light"));
  await picture("bill", "/bill", wide("light"));
  const running = [0, 1, 2, 3, 4, 5].map(() => rides(taxi));
  await picture("live", "/live", wide("dark"));
  await Promise.all(running.map((one) => one.stop()));
} finally {
  await chromium.close();
  await taxi.stop();
}
