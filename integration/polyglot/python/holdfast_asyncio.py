# SPDX-License-Identifier: Apache-2.0
"""A distributed lock on Redis 7 or Valkey for asyncio, from Python 3.11 on: copy it beside holdfast.py, which it is built on.

    async with holdfast_asyncio.lock(redis.asyncio.Redis(socket_timeout=2, retry=None), "order:42", wait=10) as lock:
        await store(part, fence=lock.token)   # store refuses a token below one that it has seen

A task renews the lock. If it is lost, the block is cancelled before the lease can end, and raises holdfast.Lost. What
blocks the event loop is not cancelled: call lock.check() behind it, which asks the clock. A wait that is cancelled leaves
the line. Waiters poll. A RedisCluster of redis.asyncio will do too. Not with redis-py 4.4.0 to 4.5.3: there a call that
is cancelled leaves its reply to the next one.
"""
import asyncio
from contextlib import asynccontextmanager, suppress
from random import uniform

from redis.exceptions import RedisError

import holdfast
from holdfast import UNKNOWN, monotonic


@asynccontextmanager
async def lock(redis, name, *, lease=30.0, wait=None, limit=None, shared=False):
    """As holdfast.lock, but the block is cancelled when the lock is lost."""
    lock = Lock(redis, name, lease, limit, shared)
    try:
        await lock._acquire(wait)
        try:
            async with asyncio.timeout(lock._ends - monotonic()) as limit:
                keeper = asyncio.create_task(lock._keep(limit))
                try:
                    yield lock
                finally:
                    keeper.cancel()
        except TimeoutError:
            if not limit.expired():
                raise
        except asyncio.CancelledError as error:  # redis-py 4.3 leaves its task marked as cancelled
            if not limit.expired() or isinstance(error.__context__, asyncio.CancelledError):  # the caller's, beside ours
                raise
        if limit.expired():
            lock._gone = lock._gone or "the lease has ended"
        lock.check()
        lock._over.set()
        reply = await lock._repeat("release")
        lock._gone = "" if reply[0] else reply[4]
        lock.check()
    except BaseException:
        lock._over.set()
        if not lock._gone:
            await asyncio.shield(lock._leave())
        raise


class Lock(holdfast.Lock):
    """A lock that is held. token is its fencing token."""
    _sent = None  # the last call

    async def _call(self, function, *args):
        sent = monotonic()
        self._sent = asyncio.ensure_future(self._send(function, *args))
        self._sent.add_done_callback(lambda call: call.cancelled() or call.exception())  # nobody else may ask for it
        return self._heard(await asyncio.shield(self._sent), sent, args)  # redis-py does not stand being cancelled

    async def _repeat(self, *call):
        try:
            return self._done(call, await self._call(*call))
        except UNKNOWN:  # by the same owner it is safe; the first release may have done what the second cannot
            reply = await self._call(*call)
            return [1] if call[0] == "release" else reply

    async def _leave(self):
        if self._sent:
            await asyncio.wait([self._sent])  # it must not overtake the call that was cancelled
        with suppress(RedisError, OSError):  # a grant that crosses with this goes on to the next in line
            await self._repeat("leave")

    async def _acquire(self, wait):
        until = float("inf") if wait is None else monotonic() + wait
        reply, answered = await self._repeat("acquire", *self._asked), monotonic()
        while reply[0] == 0:
            if monotonic() >= until:
                raise self._busy(reply)
            try:
                reply, answered = await self._call("wait", *self._asked), monotonic()
            except UNKNOWN:
                if monotonic() >= min(until, answered + self._ttl / 1000):
                    raise
            if reply[0] == 0:
                await asyncio.sleep(max(0, min(uniform(0.1, 0.3), self._ttl / 2000, until - monotonic())))

    async def _keep(self, limit):
        pause = self._ttl / 3000
        while not limit.expired():
            await asyncio.sleep(pause)
            pause = self._ttl / 20000
            with suppress(Exception):  # whatever it is: another try may go through
                reply = await self._call("renew", self._ttl, "FENCE", self.token)
                pause = self._ttl / 3000
                if reply[0] == 0:
                    self._gone = reply[4]
                if not limit.expired():
                    left = 0 if self._gone else self._ends - monotonic()
                    limit.reschedule(asyncio.get_running_loop().time() + left)
