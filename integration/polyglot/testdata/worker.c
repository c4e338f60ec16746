#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <hiredis/hiredis.h>

static redisContext *c;

static redisReply *command(const char *format, ...) {
  va_list args;
  va_start(args, format);
  redisReply *r = redisvCommand(c, format, args);
  va_end(args);
  if (!r || r->type == REDIS_REPLY_ERROR) {
    fprintf(stderr, "%s\n", r ? r->str : c->errstr);
    exit(1);
  }
  return r;
}

static void work(const char *lock, const char *counter, const char *name, int rounds) {
  for (int i = 0; i < rounds; i++) {
    char owner[200];
    snprintf(owner, sizeof owner, "%s %d", name, i);
    redisReply *r;
    while ((r = command("FCALL holdfast_wait 1 %s %s 30000 %s", lock, owner, ""))->element[0]->integer == 0) {
      freeReplyObject(r);
      usleep(2000);
    }
    redisReply *n = command("GET %s", counter);
    freeReplyObject(command("SET %s %d", counter, n->str ? atoi(n->str) + 1 : 1));
    freeReplyObject(n);
    printf("%lld\n", r->element[1]->integer);
    freeReplyObject(r);
    r = command("FCALL holdfast_release 1 %s %s", lock, owner);
    if (r->element[0]->integer != 1 || r->element[1]->integer != 0) {
      fprintf(stderr, "lost the lock\n");
      exit(1);
    }
    freeReplyObject(r);
  }
}

static void call(int n, const char **args) {
  const char *argv[20] = {"FCALL", args[0], "1"};
  if (n > 15) exit(2);
  memcpy(argv + 3, args + 1, (n - 1) * sizeof *args);
  redisReply *r = redisCommandArgv(c, n + 2, argv, NULL);
  if (!r || r->type != REDIS_REPLY_ARRAY) {
    fprintf(stderr, "%s\n", r ? r->str : c->errstr);
    exit(1);
  }
  for (size_t i = 0; i < r->elements; i++) {
    redisReply *e = r->element[i];
    if (e->type == REDIS_REPLY_INTEGER) printf("%lld\n", e->integer);
    else printf("%s\n", e->str);
  }
  freeReplyObject(r);
}

int main(int argc, const char **argv) {
  if (argc < 6) return 2;
  c = redisConnect(argv[1], atoi(argv[2]));
  if (!c || c->err) return 1;
  if (!strcmp(argv[3], "call")) call(argc - 4, argv + 4);
  else if (argc == 8) work(argv[4], argv[5], argv[6], atoi(argv[7]));
  redisFree(c);
  return 0;
}
