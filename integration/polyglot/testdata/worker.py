# SPDX-License-Identifier: Apache-2.0

import os
import select
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import redis

import holdfast

host, port, mode, name, lease, wait = sys.argv[1:7]
options = {"socket_timeout": int(lease) / 4000, "decode_responses": True}
if os.environ.get("CLUSTER"):
    r = redis.RedisCluster(host, int(port), **options)
else:
    r = redis.Redis(host, int(port), retry=None, **options)
terms = {"lease": int(lease) / 1000, "wait": None if wait == "-1" else int(wait) / 1000}
terms |= {"limit": os.environ.get("LIMIT"), "shared": bool(os.environ.get("SHARED"))}


def say(*words):
    print(*words, flush=True)


def hold():
    with holdfast.lock(r, name, **terms) as lock:
        lock._over._cond.acquire()  # as the thread that renews may have it at a fork
        os.fork() or sys.exit()
        lock._over._cond.release()
        os.wait()
        say("held", lock.token, lock.slot)
        while not select.select([sys.stdin], [], [], 0.01)[0]:
            lock.check()
    say("released")


def work(counter, rounds):
    for _ in range(int(rounds)):
        with holdfast.lock(r, name, **terms) as lock:
            n = int(r.get(counter) or 0)
            lock.check()
            r.set(counter, n + 1)
        say(lock.token)


def value(every, begin):
    def make():
        say("making")
        sys.stdin.readline()
        return begin.encode() + b"\0\xff"
    say("got", holdfast.once_value(r, name, float(every), make, lease=terms["lease"], wait=terms["wait"]).hex())


try:
    {"hold": hold, "work": work, "value": value}[mode](*sys.argv[7:])
except holdfast.Busy:
    say("busy")
except holdfast.Lost:
    say("lost")
