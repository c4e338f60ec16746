# SPDX-License-Identifier: Apache-2.0
"""Two workers count in Redis, one at a time. Run it in two terminals: python3 example.py [URL]"""
import sys
import time

import redis

import holdfast

r = redis.Redis.from_url(sys.argv[1] if len(sys.argv) > 1 else "redis://127.0.0.1:6379", socket_timeout=2, retry=None)
for _ in range(10):
    with holdfast.lock(r, "example", lease=10, wait=60) as lock:
        n = int(r.get("example:count") or 0)
        time.sleep(0.2)  # the work
        lock.check()
        r.set("example:count", n + 1)
        print("count", n + 1, "with the fencing token", lock.token)
