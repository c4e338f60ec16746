// SPDX-License-Identifier: Apache-2.0
// Workers count in Redis, one at a time. Run it in two terminals: node example.js [URL]
const { setTimeout: sleep } = require("node:timers/promises");
const { createClient } = require("redis");
const { withLock } = require("./holdfast.js");

async function main() {
  const client = createClient({ url: process.argv[2] ?? "redis://127.0.0.1:6379", disableOfflineQueue: true });
  client.on("error", (err) => console.error(err.message)); // it connects again by itself
  await client.connect();
  for (let i = 0; i < 10; i++) {
    await withLock(client, "example", { lease: 10_000, wait: 60_000 }, async (signal, token) => {
      const n = Number(await client.get("example:count")) + 1;
      await sleep(200, null, { signal }); // the work
      await client.set("example:count", String(n));
      console.log("count", n, "with the fencing token", token);
    });
  }
  await client.quit();
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
