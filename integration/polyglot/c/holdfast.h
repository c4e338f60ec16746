/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A distributed lock on Redis 7 or Valkey: Holdfast's functions library over hiredis.
 *
 *     struct holdfast lock;
 *     if (holdfast_lock(&lock, connect_redis, NULL, "order:42", 30000, 10000) != HOLDFAST_OK) {
 *       fprintf(stderr, "%s\n", lock.error);
 *       return 1;
 *     }
 *     while (more() && holdfast_renew(&lock) == HOLDFAST_OK)   // before each step
 *       store(next(), lock.token);                             // refuses a token below one that it has seen
 *     int lost = holdfast_release(&lock) == HOLDFAST_LOST;
 *
 * The key is "lock:order:42", as the Go client's. Nothing renews the lock but holdfast_renew, which asks the server once
 * a third of the lease has passed: call it from the program's loop, often. connect_redis(arg) opens a connection with
 * a timeout below a third of the lease (redisConnectWithTimeout and redisSetTimeout). A lock has one for its calls and,
 * while it waits, one for SSUBSCRIBE. A lock is for one thread at a time. Ignore SIGPIPE: hiredis does not.
 * holdfast_lock_beside takes it beside others.
 */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <hiredis/hiredis.h>

enum {
  HOLDFAST_OK,
  HOLDFAST_BUSY,    /* somebody else has the lock, and had it for as long as the call was to wait */
  HOLDFAST_LOST,    /* the lease has ended, or the lock was taken away: somebody else may have it */
  HOLDFAST_REFUSED, /* the server answered with an error */
  HOLDFAST_UNKNOWN  /* no answer: the call may have run */
};

struct holdfast {
  long long token; /* the fencing token, while the lock is held */
  int slot;        /* its number beside others, which no other holder has: from 1 on. 0: it is held alone */
  char error[200]; /* why the last call failed */

  /* the rest is private */
  redisContext *(*connect)(void *arg);
  void *arg;
  redisContext *redis, *line;
  char key[512], owner[160], channel[700], ttl[24], beside[24];
  int pid;
  long long lease, ends, due; /* ms of the monotonic clock */
  int gone;
};

/*
 * holdfast_lock takes the lock. It waits in line for wait_ms at most (0: not at all, negative: for ever). A result other
 * than HOLDFAST_OK leaves nothing held, waited for, or allocated. HOLDFAST_UNKNOWN comes after one repeat, and in line
 * after a lease without an answer. A name has 400 bytes at most.
 */
int holdfast_lock(struct holdfast *lock, redisContext *(*connect)(void *arg), void *arg, const char *name,
                  long long lease_ms, long long wait_ms);

/*
 * holdfast_lock_beside takes the lock beside at most limit - 1 others that take it with a limit, or with a limit of
 * HOLDFAST_SHARED beside all that share it. Else it is as holdfast_lock.
 */
#define HOLDFAST_SHARED (-1)
int holdfast_lock_beside(struct holdfast *lock, redisContext *(*connect)(void *arg), void *arg, const char *name,
                         int limit, long long lease_ms, long long wait_ms);

/* holdfast_renew renews the lock once a third of its lease has passed. Returns HOLDFAST_OK or HOLDFAST_LOST. */
int holdfast_renew(struct holdfast *lock);

/* holdfast_left returns for how many ms the lock is held for sure: 0 if it is lost. It asks nobody. */
long long holdfast_left(struct holdfast *lock);

/* holdfast_release gives the lock back and frees what it has, also after an error: then the lock ends with its lease. */
int holdfast_release(struct holdfast *lock);

#endif
