// SPDX-License-Identifier: Apache-2.0

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../c/holdfast.h"

static char **args; /* HOST PORT MODE LOCK LEASE WAIT [COUNTER ROUNDS] */

static redisContext *open_redis(void *arg) {
  long long ms = atoll(args[4]) / 4; /* below a third of the lease, for a busy machine */
  struct timeval timeout = {ms / 1000, ms % 1000 * 1000};
  redisContext *c = redisConnectWithTimeout(args[0], atoi(args[1]), timeout);
  (void)arg;
  if (c && !c->err && redisSetTimeout(c, timeout) == REDIS_OK) return c;
  if (c) redisFree(c);
  return NULL;
}

static void say(int code, const char *error) {
  if (code == HOLDFAST_BUSY) puts("busy");
  else if (code == HOLDFAST_LOST) puts("lost");
  else if (code != HOLDFAST_OK) fprintf(stderr, "%s\n", error), exit(1);
  if (code != HOLDFAST_OK) exit(0);
}

static void lock(struct holdfast *l) {
  const char *limit = getenv("LIMIT");
  int n = limit ? atoi(limit) : getenv("SHARED") ? HOLDFAST_SHARED : 0;
  int code = holdfast_lock_beside(l, open_redis, NULL, args[3], n, atoll(args[4]), atoll(args[5]));
  if (code != HOLDFAST_OK) holdfast_release(l); /* nothing is to be freed: it is safe */
  say(code, l->error);
}

static void release(struct holdfast *l) { say(holdfast_release(l), l->error); }

static void hold(void) {
  struct holdfast l;
  struct pollfd in = {0, POLLIN, 0};
  lock(&l);
  if (fork() == 0) _exit(holdfast_release(&l));
  wait(NULL);
  printf("held %lld %d\n", l.token, l.slot);
  while (holdfast_renew(&l) == HOLDFAST_OK && poll(&in, 1, 10) == 0) {
  }
  release(&l);
  puts("released");
}

static void work(const char *counter, int rounds) {
  redisContext *c = open_redis(NULL);
  if (!c) exit(1);
  while (rounds-- > 0) {
    struct holdfast l;
    lock(&l);
    redisReply *n = redisCommand(c, "GET %s", counter);
    if (!n) exit(1);
    say(holdfast_renew(&l), l.error);
    freeReplyObject(redisCommand(c, "SET %s %d", counter, n->str ? atoi(n->str) + 1 : 1));
    freeReplyObject(n);
    printf("%lld\n", l.token);
    release(&l);
  }
  redisFree(c);
}

int main(int argc, char **argv) {
  if (argc < 7) return 2;
  args = argv + 1;
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGPIPE, SIG_IGN);
  if (!strcmp(args[2], "hold")) hold();
  else if (argc == 9) work(args[6], atoi(args[7]));
  return 0;
}
