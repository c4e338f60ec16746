const { createClient } = require("redis");
const { setTimeout: sleep } = require("timers/promises");

const [host, port, mode, ...rest] = process.argv.slice(2);

async function work(client, lock, counter, name, rounds) {
  for (let i = 0; i < Number(rounds); i++) {
    const owner = `${name} ${i}`;
    let got;
    while ((got = await client.sendCommand(["FCALL", "holdfast_wait", "1", lock, owner, "30000", ""]))[0] === 0) {
      await sleep(2);
    }
    await client.set(counter, String(Number((await client.get(counter)) || 0) + 1));
    console.log(String(got[1]));
    const back = await client.sendCommand(["FCALL", "holdfast_release", "1", lock, owner]);
    if (back[0] !== 1 || back[1] !== 0) throw new Error("lost the lock");
  }
}

(async () => {
  const client = createClient({ socket: { host, port: Number(port) } });
  await client.connect();
  if (mode === "call") console.log((await client.sendCommand(["FCALL", rest[0], "1", ...rest.slice(1)])).join("\n"));
  else await work(client, ...rest);
  await client.quit();
})().catch((err) => {
  console.error(err);
  process.exit(1);
});
