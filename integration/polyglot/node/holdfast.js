// SPDX-License-Identifier: Apache-2.0
/**
 * A distributed lock on Redis 7 or Valkey: Holdfast's functions library over node-redis.
 *
 *     await withLock(client, "order:42", { lease: 30_000, wait: 10_000 }, async (signal, token) => {
 *       signal.throwIfAborted();           // before each step: a LostError
 *       await store(part, token, signal);  // store refuses a token below one that it has seen
 *     });
 *
 * Or `await using lock = await acquire(client, "order:42")`. The key is "lock:order:42", as the Go client's. Timers
 * renew the lock, and abort the signal when it is lost, before the lease can end. After code that blocks the event loop
 * look at lock.lost, which asks the clock. Waiters are told by SSUBSCRIBE, on a connection of their own. node-redis has
 * it from 4.6 on; with an older one they poll. Give the client disableOfflineQueue: true, or a write of yours that waits
 * for a connection is sent after the lock was lost.
 *
 * With { limit: n } the lock is taken beside at most n - 1 others that take it with a limit, with { shared: true } beside
 * all that share it. lock.slot is then a number from 1 on that no other holder has.
 */
"use strict";
const { randomBytes } = require("node:crypto");
const { hostname } = require("node:os");
class BusyError extends Error {} // somebody else has the lock
class LostError extends Error {} // the lease has ended, or the lock was taken away
const refused = (err) => /^[A-Z]{2,}\b/.test(err.message); // by the server; after other errors the call may have run
const quietly = (promise) => promise.catch(() => {});
function within(ms, promise) {
  let timer;
  const silent = new Promise((_, reject) => (timer = setTimeout(reject, ms, new Error("no answer from Redis"))));
  return Promise.race([promise, silent]).finally(() => clearTimeout(timer));
}

/** Calls fn(signal, token, lock) with the lock held. Rejects with LostError if it was lost before fn ended. */
async function withLock(client, name, options, fn) {
  const lock = await acquire(client, name, options);
  const result = await (async () => fn(lock.signal, lock.token, lock))().catch(async (err) => {
    await quietly(lock.release());
    throw err;
  });
  await lock.release();
  return result;
}

/**
 * Takes the lock. Waits in line for `wait` ms at most (default: for ever, 0: not at all), or until `signal` aborts, and
 * then rejects. `lease` is in ms. After a rejection nothing is held or waited for. An error of the connection rejects
 * after one repeat, and in line after a lease without an answer.
 */
async function acquire(client, name, { lease = 30_000, wait = Infinity, signal, limit, shared } = {}) {
  const beside = [...(limit === undefined ? [] : ["LIMIT", limit]), ...(shared ? ["SHARED"] : [])];
  const lock = new Lock(client, "lock:" + name, Math.round(lease), beside);
  try {
    return await lock._acquire(performance.now() + wait, signal);
  } catch (err) {
    await quietly(lock._repeat("leave")); // a grant that crosses with this goes on to the next in line
    throw err;
  } finally {
    lock._close();
  }
}

/** A lock that is held. token is its fencing token, slot its number beside others (0: it is held alone); its signal
 * aborts when it is lost. */
class Lock {
  #abort = new AbortController();
  #state = { ends: 0, wall: 0, over: false, released: null, grant: 0, sub: null, channel: [], wake: () => {} };
  constructor(client, key, lease, beside) {
    const patience = Math.min(2000, Math.max(500, lease / 5)); // ms to an answer
    const host = hostname().replace(/[^!-9;-~]/g, "-");
    const owner = `${host}:${process.pid}:${randomBytes(12).toString("base64url")}`; // never used again
    Object.assign(this, { client, key, lease, patience, token: 0, slot: 0, owner, asked: [lease, ...beside] });
  }
  get signal() { return this.#abort.signal; }
  /** Whether the lock was lost before its release: asks the clock too. */
  get lost() {
    const { over, ends, wall } = this.#state; // performance.now() stands still while the machine is suspended
    if (!over && (performance.now() >= ends || Date.now() >= wall)) this.#lose("the lease has ended");
    return this.signal.aborted;
  }
  /** Gives the lock back. Rejects with LostError if it was lost before that. A repeat gives the same answer. */
  release() { return (this.#state.released ??= this.#release()); }
  async #release() {
    if (!this.lost) {
      this.#state.over = true;
      const [yes, , , , why] = await this._repeat("release");
      if (yes === 0) this.#lose(why);
    }
    this.signal.throwIfAborted();
  }
  #lose(why) { this.#abort.abort(new LostError(`${this.key}: ${why}`)); }
  /** Resolves to an array: a token or 1, or a refusal: 0, pttl_ms, owner, waiters or position, why ... */
  async #call(name, ...args) {
    const sent = performance.now(), date = Date.now(), stop = new AbortController();
    const words = ["FCALL", "holdfast_" + name, "1", this.key, this.owner, ...args.map(String)];
    const sending = this.client.sendCommand(words, { signal: stop.signal, abortSignal: stop.signal, typeMapping: {} });
    const reply = [].concat(await within(this.patience, sending).finally(() => stop.abort())); // not sent after a reconnection
    if (!Number.isSafeInteger(reply[0])) throw new Error(`not a reply of the library: ${reply}`);
    if (reply[0] !== 0 && args.length) { // the lease counts from before the request, less a margin for other clocks
      const good = this.lease * 0.99 - 2;
      Object.assign(this.#state, { ends: sent + good, wall: date + good });
      if (reply.length > 1) [, this.token, this.slot] = reply; // beside others: 1, token, slot
      else [this.token] = reply;
      setTimeout(() => this.lost, Math.min(this.#state.ends - performance.now() + 1, 2 ** 31 - 1)).unref();
    }
    return reply;
  }
  async _repeat(...call) {
    try {
      return await this.#call(...call);
    } catch (err) {
      if (refused(err)) throw err;
      const reply = await this.#call(...call); // the same owner: it is safe
      return call[0] === "release" ? [1] : reply; // the first one may have given it back
    }
  }
  async #renew() {
    if (this.lost || this.#state.over) return;
    const answer = await this.#call("renew", this.lease, "FENCE", this.token).catch(() => null);
    if (answer?.[0] === 0 && !this.#state.over) this.#lose(answer[4]);
    setTimeout(() => this.#renew(), Math.min(this.lease / (answer ? 3 : 20), 2 ** 31 - 1)).unref();
  }
  async _acquire(until, signal) {
    signal?.throwIfAborted();
    let reply = await this._repeat("acquire", ...this.asked), answered = performance.now();
    while (reply[0] === 0) {
      signal?.throwIfAborted();
      if (performance.now() >= until) throw new BusyError(`${this.key}: ${reply[4]} by ${reply[2]} for ${reply[1]} ms`);
      try {
        if (!this.#state.sub && this.client.sSubscribe) await this.#subscribe();
        reply = await this.#call("wait", ...this.asked, ...this.#state.channel);
        answered = performance.now();
        if (reply[0] === 0) await this.#listen(reply, until, signal);
      } catch (err) {
        if (refused(err) || performance.now() >= Math.min(until, answered + this.lease)) throw err;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
    setTimeout(() => this.#renew(), Math.min(this.lease / 3, 2 ** 31 - 1)).unref();
    return this;
  }
  async #subscribe() {
    const tag = /^[^{]*{([^}]+)}/.exec(this.key)?.[1] ?? this.key; // the channel must be in the key's slot
    const channel = `lock:{${tag}}:${this.owner}`;
    if (Buffer.byteLength(channel) > 512) return; // too long for the library: it polls
    const sub = (this.#state.sub = this.client.duplicate()).on("error", () => {});
    sub.on("ready", () => this.#state.wake()); // time to ask again
    await quietly(within(this.patience, sub.connect().then(() => sub.sSubscribe(channel, (message) => {
      const [grant, , , , ...whose] = message.split(" "); // believed for this owner and key only
      if (whose.join(" ") === `${this.owner} ${this.key}`) this.#state.grant = Number(grant);
      this.#state.wake();
    })).then(() => (this.#state.channel = ["CHANNEL", channel])))); // else it polls
  }
  /** Waits until it is time to ask again: soon after a grant, whose lease is short until then. */
  async #listen([, left, , position, , , fence, subscribers], until, signal) {
    const told = position > 0 && subscribers > 0;
    if (this.#state.channel.length && !told) this._close();
    const pause = told ? 1000 + 500 * Math.random() : Math.min(100 + 200 * Math.random(), this.lease / 2);
    const most = Math.min(pause, until - performance.now(), left >= 0 ? left + 1 : pause);
    const woken = new Promise((resolve) => (this.#state.wake = resolve)), { wake } = this.#state;
    signal?.addEventListener("abort", wake); // taken back below: the signal can be the program's, and live for long
    const { grant } = this.#state;
    this.#state.grant = 0; // whoever may publish can write one that is never reached
    if (!(grant > fence)) await quietly(within(most, woken)); // an older one is void
    signal?.removeEventListener("abort", wake);
  }
  _close() {
    const { sub } = this.#state;
    Object.assign(this.#state, { sub: null, channel: [] });
    quietly((async () => sub?.disconnect())()); // it throws if it is not connected
  }
}
if (Symbol.asyncDispose) Lock.prototype[Symbol.asyncDispose] = Lock.prototype.release;
module.exports = { acquire, withLock, BusyError, LostError };
