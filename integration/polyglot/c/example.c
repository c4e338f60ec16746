/* SPDX-License-Identifier: Apache-2.0 */
/* Workers count in Redis, one at a time: cc -o example example.c holdfast.c -lhiredis; ./example [HOST [PORT]] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "holdfast.h"

static const char *host = "127.0.0.1";
static int port = 6379;

static redisContext *connect_redis(void *arg) {
  struct timeval timeout = {2, 0};
  redisContext *redis = redisConnectWithTimeout(host, port, timeout);
  (void)arg;
  if (redis && !redis->err && redisSetTimeout(redis, timeout) == REDIS_OK) return redis;
  if (redis) redisFree(redis);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc > 1) host = argv[1];
  if (argc > 2) port = atoi(argv[2]);
  signal(SIGPIPE, SIG_IGN);
  redisContext *redis = connect_redis(NULL);
  for (int i = 0; redis && i < 10; i++) {
    struct holdfast lock;
    if (holdfast_lock(&lock, connect_redis, NULL, "example", 10000, 60000) != HOLDFAST_OK) {
      fprintf(stderr, "%s\n", lock.error);
      return 1;
    }
    redisReply *reply = redisCommand(redis, "GET example:count");
    int n = reply && reply->str ? atoi(reply->str) + 1 : 1;
    freeReplyObject(reply);
    usleep(200000); /* the work */
    if (holdfast_renew(&lock) == HOLDFAST_OK) {
      freeReplyObject(redisCommand(redis, "SET example:count %d", n));
      printf("count %d with the fencing token %lld\n", n, lock.token);
    }
    if (holdfast_release(&lock) != HOLDFAST_OK) fprintf(stderr, "%s\n", lock.error);
  }
  if (redis) redisFree(redis);
  return redis ? 0 : 1;
}
