# SPDX-License-Identifier: Apache-2.0
"""A distributed lock on Redis 7 or Valkey: Holdfast's functions library over redis-py.

    with holdfast.lock(redis.Redis(socket_timeout=2, retry=None), "order:42", lease=30, wait=10) as lock:
        for part in parts:
            lock.check()                      # raises holdfast.Lost
            store(part, fence=lock.token)     # store refuses a token below one that it has seen

The key is "lock:order:42", as the Go client's. A thread renews the lock. It can be lost all the same, for example when
the server cannot be reached: call lock.check() before each step, or look at lock.lost. Give the client a socket_timeout
below a third of the lease, or a call to a silent server does not end, and retry=None: from 6.0 on it would repeat a
release whose reply was lost, and take the second reply, 'not yours', for a loss. Waiters are told by SSUBSCRIBE, on a
connection of their own; with a RedisCluster they poll. holdfast_asyncio.py is for asyncio.

With limit=n the lock is taken beside at most n - 1 others that take it with a limit, with shared=True beside all that
share it. lock.slot is then a number from 1 on that no other holder has.

once_value(redis, "token", 3000, fetch) is for a value that many processes need: one makes it, and all get it.
"""
import os
import random
import re
import secrets
import socket
import threading
import time
from contextlib import contextmanager, suppress
from time import sleep

from redis.exceptions import ConnectionError, RedisError, ResponseError, TimeoutError

HOST = re.sub("[^!-9;-~]", "-", socket.gethostname())
UNKNOWN = (ConnectionError, TimeoutError, OSError)  # the call may have run


def monotonic():  # goes on while the machine is suspended, where there is such a clock
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Busy(Exception):
    """Somebody else has the lock."""


class Lost(Exception):
    """The lease has ended, or the lock was taken away: somebody else may have it."""


class _Done(Exception):
    """There is a value, in place of the lock."""


@contextmanager
def lock(redis, name, *, lease=30.0, wait=None, limit=None, shared=False, _value=False):
    """Holds the lock for a with block, as a Lock. Waits in line for `wait` seconds at most (None: for ever, 0: not at all)
    and then raises Busy. The lease is in seconds. The end of the block gives the lock back, and raises Lost if it was lost
    before that. An error of the connection is raised after one repeat, and in line after a lease without an answer."""
    lock = Lock(redis, name, lease, limit, shared, _value)
    try:
        lock._acquire(wait)
        threading.Thread(target=lock._keep, name="holdfast " + lock.key, daemon=True).start()
        yield lock
        lock.check()
        lock._stop()
        reply = lock._repeat(*lock._end)
        lock._gone = "" if reply[0] else reply[4]
        lock.check()
    except BaseException as error:
        lock._stop()
        lock._close()
        with suppress(RedisError, OSError):  # a grant that crosses with this goes on to the next in line
            lock._gone or isinstance(error, _Done) or lock._repeat("leave")
        raise


def once_value(redis, name, every, make, *, lease=30.0, wait=None):
    """The bytes that make() returns: made at most once in `every` seconds by all processes together, and one at a time.
    The others wait as for a lock. If make fails, the next one makes its own. Raises what make does, and as lock. Each
    call asks the server, which keeps the value in clear text, 64 KiB at most. docs/client.md says what can lose it."""
    value = None
    try:
        with lock(redis, name, lease=lease, wait=wait, _value=True) as mine:
            began = monotonic()
            value = make()
            if not isinstance(value, bytes) or len(value) > 65536:
                raise ValueError("make must return bytes, 65536 at most")
            keep = min(31536000, max(2, every - monotonic() + began))  # 2 s: for those who wait
            mine._end = ("finish", value, round(keep * 1000))
    except _Done as done:
        return done.args[0]
    except (RedisError, OSError):  # of finish: it is made, though it may not be kept
        if value is None:
            raise
    return value


class Lock:
    """A lock that is held. token is its fencing token, slot its number beside others (0: it is held alone)."""
    def __init__(self, redis, name, lease, limit=None, shared=False, value=False):
        self.key, self.token, self.slot = "lock:" + name, None, 0
        self.owner = f"{HOST}:{os.getpid()}:{secrets.token_urlsafe(12)}"  # never used again
        self._redis, self._ttl, self._ends = redis, round(lease * 1000), 0
        self._asked = (self._ttl, *(() if limit is None else ("LIMIT", limit)), *(("SHARED",) if shared else ()),
                       *(("VALUE",) if value else ()))
        self._end = ("release",)
        self._over, self._gone, self._pid = threading.Event(), "", os.getpid()  # gone: why it is lost
        tag = re.match("[^{]*{([^}]+)}", self.key)  # the channel must be in the key's slot
        self._name = "lock:{%s}:%s" % (tag[1] if tag else self.key, self.owner)
        self._pubsub, self._channel = None, ()
        self._polls = not hasattr(redis, "connection_pool") or len(self._name.encode()) > 512  # the most of a channel

    @property
    def lost(self):
        """Whether the lock was lost before its release. True before the lease can end at the server."""
        if not self._over.is_set() and monotonic() >= self._ends:
            self._gone = "the lease has ended"
        return bool(self._gone)

    def check(self):
        if self.lost:
            raise Lost(f"{self.key}: {self._gone}")

    def _call(self, function, *args):
        sent = monotonic()
        return self._heard(self._send(function, *args), sent, args)

    def _send(self, function, *args):
        words = ("FCALL", "holdfast_" + function, 1, self.key, self.owner, *args)
        try:
            return self._redis.execute_command(*words, NEVER_DECODE=True)  # an owner may be any bytes
        except TypeError:  # of redis-py 4's RedisCluster while the slot moves: its ASKING knows no such option
            return self._redis.execute_command(*words)

    def _heard(self, reply, sent, args):
        if type(reply[0] if isinstance(reply, list) and reply else reply) is not int:
            raise ConnectionError(f"not a reply of the library, but perhaps another call's: {reply!r}")
        if isinstance(reply, list) and reply[0] == 0 and reply[4] in (b"done", "done"):
            raise _Done(reply[5].encode() if isinstance(reply[5], str) else reply[5])
        if isinstance(reply, list) and reply[0] == 0:  # a refusal: 0, pttl_ms, owner, waiters or position, why ...
            return [r.decode(errors="backslashreplace") if isinstance(r, bytes) else r for r in reply]
        if isinstance(reply, list):  # beside others: 1, token, slot
            _, reply, self.slot, *_ = reply
        if args:  # from before the request on, less a margin for clocks that differ
            self.token, self._ends = reply, sent + self._ttl / 1000 * 0.99 - 0.002
        return [reply]

    def _busy(self, reply):
        return Busy(f"{self.key}: {reply[4]} by {reply[2]!r} for {reply[1]} ms")

    def _repeat(self, *call):
        try:
            return self._done(call, self._call(*call)) if os.getpid() == self._pid else [1]  # a child of fork gives nothing back
        except UNKNOWN:  # by the same owner it is safe; the first release may have done what the second cannot
            reply = self._call(*call)
            return [1] if call[0] == "release" else reply

    def _done(self, call, reply):  # a RedisCluster repeats a release whose reply was lost by itself
        again = call[0] == "release" and not hasattr(self._redis, "connection_pool")
        return [1] if again and reply[0] == 0 and not reply[4].startswith("broken") else reply

    def _keep(self):
        pause = self._ttl / 3000
        while not self._over.wait(pause) and not self.lost:
            pause = self._ttl / 20000
            with suppress(Exception):  # whatever it is: another try may go through
                reply = self._call("renew", self._ttl, "FENCE", self.token)
                if reply[0] == 0 and not self._over.is_set():
                    self._gone = reply[4]
                pause = self._ttl / 3000

    def _stop(self):
        if os.getpid() == self._pid:  # a child of fork has no thread to stop, which may have held a mutex at the fork
            self._over.set()

    def _acquire(self, wait):
        until = float("inf") if wait is None else monotonic() + wait
        reply, answered = self._repeat("acquire", *self._asked), monotonic()
        while reply[0] == 0:
            if monotonic() >= until:
                raise self._busy(reply)
            try:
                self._subscribe()
                reply, answered = self._call("wait", *self._asked, *self._channel), monotonic()
                if reply[0] == 0:
                    self._listen(reply, until)
            except UNKNOWN:
                self._close()
                if monotonic() >= min(until, answered + self._ttl / 1000):
                    raise
                sleep(0.1)
        self._close()

    def _subscribe(self):
        if not (self._pubsub or self._polls):
            self._pubsub = self._redis.pubsub()
            try:  # a raw command: redis-py has a method for it from 5.0 on only
                self._pubsub.execute_command("SSUBSCRIBE", self._name)
                self._channel = ("CHANNEL", self._name) if self._message(5)[0] == "ssubscribe" else ()
            except ResponseError:  # forbidden: poll
                self._polls = True

    def _listen(self, reply, until):
        """Waits until it is time to ask again: soon after a grant, whose lease is short until then."""
        _, left, _, position, _, _, fence, subscribers = reply
        pause = random.uniform(1, 1.5)
        if not (position and subscribers):  # nobody would tell
            self._close()
            pause = min(random.uniform(0.1, 0.3), self._ttl / 2000)
        end = min(until, monotonic() + min(pause, (left + 1) / 1000 if left >= 0 else pause))
        while self._pubsub and monotonic() < end:
            kind, said = self._message(end - monotonic())
            grant = re.fullmatch(r"(\d+) \d+ \d+ \d+ " + re.escape(f"{self.owner} {self.key}"), said)
            if kind == "smessage" and (grant and int(grant[1]) > fence or said == "look " + self.owner):
                return  # an older one is void, and what is no grant of ours is noise
        sleep(max(0, end - monotonic()))

    def _message(self, timeout):
        try:
            message = self._pubsub.parse_response(block=False, timeout=max(timeout, 0.001))
        except UnicodeDecodeError:  # a client that decodes its responses cannot read what is noise
            message = None
        return [m.decode(errors="replace") if isinstance(m, bytes) else str(m) for m in message[::2]] if message else ("", "")

    def _close(self):
        if self._pubsub:
            self._pubsub.close()
        self._pubsub, self._channel = None, ()
