// SPDX-License-Identifier: Apache-2.0

const { createClient } = require("redis");
const { acquire, withLock, BusyError, LostError } = require("../node/holdfast.js");

const [host, port, mode, name, lease, wait, counter, rounds] = process.argv.slice(2);
const { LIMIT: limit, SHARED: shared } = process.env;
const options = { lease: Number(lease), wait: wait === "-1" ? Infinity : Number(wait), limit, shared };

async function hold(client) {
  const lock = await acquire(client, name, options);
  console.log("held", lock.token, lock.slot);
  await new Promise((resolve) => {
    process.stdin.once("data", resolve).once("end", resolve);
    lock.signal.addEventListener("abort", resolve);
  });
  await lock.release().catch(() => lock.release());
  console.log("released");
}

async function work(client) {
  for (let i = 0; i < Number(rounds); i++) {
    await withLock(client, name, options, async (signal, token) => {
      const n = Number(await client.get(counter)) + 1;
      signal.throwIfAborted();
      await client.set(counter, String(n));
      console.log(token);
    });
  }
}

(async () => {
  const client = createClient({ socket: { host, port: Number(port) } });
  client.on("error", () => {});
  await client.connect();
  await (mode === "hold" ? hold(client) : work(client));
  process.exit(0);
})().catch((err) => {
  if (err instanceof BusyError) console.log("busy");
  else if (err instanceof LostError) console.log("lost");
  else console.error(err);
  process.exit(err instanceof BusyError || err instanceof LostError ? 0 : 1);
});
