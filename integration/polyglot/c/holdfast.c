/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* getentropy */
#include "holdfast.h"
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOCK_BOOTTIME /* it goes on while the machine is suspended */
#define CLOCK_BOOTTIME CLOCK_MONOTONIC
#endif
static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}
static long long least(long long a, long long b) { return a < b ? a : b; }
static void drop(redisContext **c) {
  if (*c) redisFree(*c);
  *c = NULL;
}
static int failed(struct holdfast *l, int code, const char *why) {
  snprintf(l->error, sizeof l->error, "%.100s: %.90s", l->key, why);
  return code;
}

/* call leaves the integers of the reply in out: a token or 1, or a refusal: 0, pttl_ms, owner, position, why ...
 * The arguments end with the first that is NULL. */
static int call(struct holdfast *l, long long out[8], const char *name, const char *a, const char *b, const char *c) {
  const char *argv[10] = {"FCALL", name, "1", l->key, l->owner, a, b, c};
  int argc = !a ? 5 : !b ? 6 : !c ? 7 : 8, code = HOLDFAST_OK;
  if (l->beside[0] && a && strcmp(name, "holdfast_renew")) {
    if (l->beside[0] != 'S') argv[argc++] = "LIMIT";
    argv[argc++] = l->beside;
  }
  if (!l->redis) l->redis = l->connect(l->arg);
  if (!l->redis) return failed(l, HOLDFAST_UNKNOWN, "no connection");
  long long sent = now();
  redisReply *reply = redisCommandArgv(l->redis, argc, argv, NULL);
  if (!reply) return code = failed(l, HOLDFAST_UNKNOWN, l->redis->errstr), drop(&l->redis), code;
  memset(out, 0, 8 * sizeof *out);
  if (reply->type == REDIS_REPLY_INTEGER) out[0] = reply->integer;
  else if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3)
    code = failed(l, HOLDFAST_REFUSED, reply->str ? reply->str : "not a reply of the library");
  else failed(l, code, reply->elements > 4 && reply->element[4]->str ? reply->element[4]->str : "");
  for (size_t i = 0; i < reply->elements && i < 8; i++) out[i] = reply->element[i]->integer;
  if (out[0] && a) { /* the lease counts from before the request, less a margin for clocks that differ */
    l->token = out[reply->elements ? 1 : 0]; /* beside others it is 1, token, slot */
    if (reply->elements) l->slot = (int)out[2];
    l->ends = sent + l->lease - l->lease / 100 - 3;
    l->due = sent + l->lease / 3;
  }
  freeReplyObject(reply);
  return code;
}
/* twice repeats a call whose answer was lost: by the same owner that is safe. */
static int twice(struct holdfast *l, long long out[8], const char *name, const char *a) {
  if (getpid() != l->pid) return (out[0] = 1), HOLDFAST_OK; /* a child of fork gives nothing back */
  int code = call(l, out, name, a, NULL, NULL);
  if (code != HOLDFAST_UNKNOWN) return code;
  code = call(l, out, name, a, NULL, NULL);
  if (code == HOLDFAST_OK && !strcmp(name, "holdfast_release")) out[0] = 1; /* the first one may have done it */
  return code;
}

/* subscribe returns the channel that is subscribed, or "" to poll. The channel must be in the slot of the key. */
static const char *subscribe(struct holdfast *l) {
  if (l->line) return l->channel;
  l->channel[0] = 0;
  if (!(l->line = l->connect(l->arg))) return "";
  const char *tag = strchr(l->key, '{'), *end = tag ? strchr(tag, '}') : NULL;
  int part = end && end > tag + 1 ? (int)(end - tag - 1) : 0;
  char name[sizeof l->channel];
  snprintf(name, sizeof name, "lock:{%.*s}:%s", part ? part : 500, part ? tag + 1 : l->key, l->owner);
  redisReply *reply = redisCommand(l->line, "SSUBSCRIBE %s", name);
  if (!reply) drop(&l->line);
  if (reply && reply->type == REDIS_REPLY_ARRAY) strcpy(l->channel, name); /* else an ACL forbids it */
  if (reply) freeReplyObject(reply);
  return l->channel;
}
/* granted returns the token of a grant of this key to this owner, or 0. */
static long long granted(struct holdfast *l, redisReply *r) {
  char whose[sizeof l->owner + sizeof l->key];
  long long token = 0;
  int at = 0;
  snprintf(whose, sizeof whose, "%s %s", l->owner, l->key);
  if (r->type == REDIS_REPLY_ARRAY && r->elements == 3 && r->element[2]->type == REDIS_REPLY_STRING)
    sscanf(r->element[2]->str, "%lld %*s %*s %*s %n", &token, &at);
  return at && !strcmp(r->element[2]->str + at, whose) ? token : 0;
}
/* hear waits until it is time to ask again: soon after a grant, whose lease is short until then. */
static void hear(struct holdfast *l, const long long reply[8], long long until) {
  long long left = reply[1], fence = reply[6], token = 0, ms;
  int told = reply[3] > 0 && reply[7] > 0;
  long long pause = told ? 1000 + now() % 500 : least(100 + now() % 200, l->lease / 2);
  until = least(until, now() + (left < 0 ? pause : least(pause, left + 1)));
  if (!told && l->channel[0]) drop(&l->line);
  while ((ms = until - now()) > 0) {
    redisReply *message = NULL;
    if (l->line && redisGetReplyFromReader(l->line, (void **)&message) != REDIS_OK) drop(&l->line);
    if (message) token = granted(l, message), freeReplyObject(message);
    if (token > fence) return; /* an older one is void */
    struct pollfd ready = {l->line ? l->line->fd : -1, POLLIN, 0};
    if (!message && poll(&ready, 1, (int)ms) > 0 && redisBufferRead(l->line) != REDIS_OK) drop(&l->line);
  }
}
static int acquire(struct holdfast *l, long long until) {
  long long reply[8] = {0}, answered = now();
  int code = twice(l, reply, "holdfast_acquire", l->ttl);
  while (!code && reply[0] == 0) {
    if (now() >= until) return HOLDFAST_BUSY;
    const char *channel = subscribe(l);
    code = call(l, reply, "holdfast_wait", l->ttl, channel[0] ? "CHANNEL" : NULL, channel);
    if (!code) answered = now();
    if (!code && reply[0] == 0) hear(l, reply, until);
    if (code == HOLDFAST_REFUSED || (code && now() >= least(until, answered + l->lease))) return code;
    if (code) poll(NULL, 0, 100), code = 0, reply[0] = 0; /* ask again */
  }
  return code;
}

/* name_owner names the holder: host:pid:random, which is never used again. Returns 0 without entropy. */
static int name_owner(struct holdfast *l) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  unsigned char random[16];
  char *c = l->owner;
  if (getentropy(random, sizeof random)) return 0;
  if (gethostname(c, 100)) strcpy(c, "unknown");
  for (; *c; c++)
    if (*c <= ' ' || *c == ':' || *c > '~') *c = '-';
  c += sprintf(c, ":%d:", l->pid = getpid());
  for (int i = 0; i < 16; i++) *c++ = letters[random[i] % 64];
  *c = 0;
  return 1;
}
int holdfast_lock(struct holdfast *l, redisContext *(*connect)(void *), void *arg, const char *name, long long lease,
                  long long wait) {
  return holdfast_lock_beside(l, connect, arg, name, 0, lease, wait);
}
int holdfast_lock_beside(struct holdfast *l, redisContext *(*connect)(void *), void *arg, const char *name, int limit,
                         long long lease, long long wait) {
  *l = (struct holdfast){.connect = connect, .arg = arg, .lease = lease};
  int long_name = snprintf(l->key, sizeof l->key, "lock:%.450s", name) > 405;
  if (long_name || !name_owner(l)) return failed(l, HOLDFAST_REFUSED, "a long name, or no entropy");
  snprintf(l->ttl, sizeof l->ttl, "%lld", lease);
  if (limit == HOLDFAST_SHARED) strcpy(l->beside, "SHARED");
  else if (limit) snprintf(l->beside, sizeof l->beside, "%d", limit);
  int code = acquire(l, wait < 0 ? INT64_MAX : now() + wait);
  drop(&l->line);
  struct holdfast quiet = *l; /* keeps the error */
  if (code) twice(&quiet, (long long[8]){0}, "holdfast_leave", NULL); /* a grant that crosses with it goes on */
  if (code) drop(&quiet.redis), l->redis = NULL;
  return code;
}
int holdfast_renew(struct holdfast *l) {
  long long reply[8];
  char fence[24];
  if (holdfast_left(l) > l->lease / 3 && now() >= l->due) { /* without an answer it ends before the lease */
    l->due = now() + l->lease / 20; /* to try again after an error */
    snprintf(fence, sizeof fence, "%lld", l->token);
    l->gone = call(l, reply, "holdfast_renew", l->ttl, "FENCE", fence) == HOLDFAST_OK && reply[0] == 0;
  }
  return holdfast_left(l) ? HOLDFAST_OK : HOLDFAST_LOST;
}
long long holdfast_left(struct holdfast *l) {
  long long left = l->ends - now();
  if (!l->gone && left <= 0) l->gone = 1, failed(l, HOLDFAST_LOST, "the lease has ended");
  return l->gone ? 0 : left;
}
int holdfast_release(struct holdfast *l) {
  long long reply[8];
  int code = holdfast_left(l) ? twice(l, reply, "holdfast_release", NULL) : HOLDFAST_LOST;
  if (code == HOLDFAST_OK && reply[0] == 0) code = HOLDFAST_LOST;
  drop(&l->redis);
  return code;
}
