# SPDX-License-Identifier: Apache-2.0

import asyncio
import os
import select
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import redis.asyncio
import redis.asyncio.cluster

import holdfast
import holdfast_asyncio

host, port, mode, name, lease, wait = sys.argv[1:7]
terms = {"lease": int(lease) / 1000, "wait": None if wait == "-1" else int(wait) / 1000}
terms |= {"limit": os.environ.get("LIMIT"), "shared": bool(os.environ.get("SHARED"))}


def say(*words):
    print(*words, flush=True)


async def hold(r):
    async with holdfast_asyncio.lock(r, name, **terms) as lock:
        say("held", lock.token, lock.slot)
        while not select.select([sys.stdin], [], [], 0)[0]:
            await asyncio.sleep(0.01)
    say("released")


async def work(r, counter, rounds):
    for _ in range(int(rounds)):
        async with holdfast_asyncio.lock(r, name, **terms) as lock:
            n = int(await r.get(counter) or 0)
            lock.check()
            await r.set(counter, n + 1)
        say(lock.token)


async def main():
    options = {"socket_timeout": int(lease) / 4000}
    if os.environ.get("CLUSTER"):
        r = redis.asyncio.cluster.RedisCluster(host, int(port), **options)
    else:
        r = redis.asyncio.Redis(host=host, port=int(port), retry=None, **options)
    try:
        await (hold(r) if mode == "hold" else work(r, *sys.argv[7:]))
    except holdfast.Busy:
        say("busy")
    except holdfast.Lost:
        say("lost")
    finally:
        await getattr(r, "aclose", r.close)()


asyncio.run(main())
