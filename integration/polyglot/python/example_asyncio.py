# SPDX-License-Identifier: Apache-2.0
"""An agent answers a conversation, one turn at a time. Run it in two terminals: python3 example_asyncio.py [URL]"""
import asyncio
import sys

import redis.asyncio

import holdfast_asyncio


async def main(url="redis://127.0.0.1:6379"):
    r = redis.asyncio.Redis.from_url(url, socket_timeout=2, retry=None)
    for _ in range(10):
        async with holdfast_asyncio.lock(r, "conversation:7", lease=10, wait=60) as lock:
            await asyncio.sleep(0.2)  # ask the model: the call is cancelled if the lock is lost
            turns = await r.rpush("conversation:7:turns", lock.token)
            print("turn", turns, "with the fencing token", lock.token)


asyncio.run(main(*sys.argv[1:2]))
