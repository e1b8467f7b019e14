// A demo that stays, and a Chromium that asks nobody else for anything.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { chromium } = require("playwright-core");

const START_TIMEOUT_MILLIS = 60_000;
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** The demo, once its traffic is over and it stays: where it is, a key, and how to end it. */
export const demo = async (data, seconds) => {
  const words = ["demo", "--keep", "--seconds", String(seconds), "--data-dir", data];
  const child = spawn(process.env.TAXIMETER_BINARY, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let said = "";
  child.stdout.setEncoding("utf8");
  const started = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the demo says only: ${said}`)), START_TIMEOUT_MILLIS);
    child.stdout.on("data", (text) => {
      said += text;
      const [, admin] = /Console: (http:\S+?)\/\n/.exec(said) ?? [];
      const [, listen, key] = /curl (http:\S+)\/v1\/\S+ -H 'authorization: Bearer (\S+)'/.exec(said) ?? [];
      if (admin && key) {
        clearTimeout(late);
        resolve({ admin, listen, key });
      }
    });
  });
  const stop = async () => {
    child.kill("SIGINT");
    await ended;
  };
  try {
    return { ...(await started), stop };
  } catch (error) {
    await stop();
    throw error;
  }
};

export const browser = () => chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });

/** Streams from the simulated engine, one behind the other until `stop` is awaited. */
export const rides = ({ listen, key }) => {
  const messages = [{ role: "user", content: "Where to?" }];
  const body = JSON.stringify({ model: "gpt-5.4-mini", stream: true, max_tokens: 400, messages });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  let going = true;
  const ended = (async () => {
    while (going) {
      const answer = await fetch(`${listen}/v1/chat/completions`, { method: "POST", headers, body });
      await answer.text();
    }
  })();
  const stop = () => {
    going = false;
    return ended;
  };
  return { stop };
};
