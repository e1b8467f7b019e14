// When Chromium first shows something of a page, and when all of it is there. A new window for each, with nothing in
// its cache; the least of some.
// usage: node paint.mjs URL…    (NODE_MODULES as run sets it)

import { browser } from "./browser.mjs";

const ROUNDS = 5;
const chromium = await browser();
console.log(`${"in Chromium".padEnd(40)}${"paint, ms".padStart(10)}${"load, ms".padStart(10)}  goal`);
try {
  for (const url of process.argv.slice(2)) {
    const times = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const window = await chromium.newContext();
      const page = await window.newPage();
      await page.goto(url, { waitUntil: "load" });
      // A page that is there at once is loaded before it is painted.
      await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
      times.push(await page.evaluate(() => {
        const [navigation] = performance.getEntriesByType("navigation");
        const [paint] = performance.getEntriesByName("first-contentful-paint");
        return { paint: paint.startTime, load: navigation.loadEventStart };
      }));
      await window.close();
    }
    const least = (name) => Math.min(...times.map((time) => time[name])).toFixed(1).padStart(10);
    const { pathname, search } = new URL(url);
    console.log(`${(pathname + search).padEnd(40)}${least("paint")}${least("load")}  ≤ 200`);
  }
} finally {
  await chromium.close();
}
