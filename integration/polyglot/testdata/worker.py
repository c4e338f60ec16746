import sys
import time
import redis

host, port, mode = sys.argv[1:4]
r = redis.Redis(host, int(port), decode_responses=True)


def work(lock, counter, name, rounds):
    for i in range(int(rounds)):
        owner = f"{name} {i}"
        while (got := r.execute_command("FCALL", "holdfast_wait", 1, lock, owner, 30000, ""))[0] == 0:
            time.sleep(0.002)
        r.set(counter, int(r.get(counter) or 0) + 1)
        print(got[1])
        if r.execute_command("FCALL", "holdfast_release", 1, lock, owner) != [1, 0]:
            sys.exit("lost the lock")


if mode == "call":
    print(*r.execute_command("FCALL", sys.argv[4], 1, *sys.argv[5:]), sep="\n")
else:
    work(*sys.argv[4:8])
