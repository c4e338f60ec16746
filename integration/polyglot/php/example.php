<?php
// SPDX-License-Identifier: Apache-2.0
// Workers count in Redis, one at a time. Run it in two terminals: php example.php [HOST [PORT]]
require __DIR__ . '/holdfast.php';

$redis = new Redis();
$redis->connect($argv[1] ?? '127.0.0.1', (int) ($argv[2] ?? 6379), 2, null, 0, 2);
for ($i = 0; $i < 10; $i++) {
    Holdfast\lock($redis, 'example', function (Holdfast\Lock $lock) use ($redis) {
        $n = (int) $redis->get('example:count') + 1;
        usleep(200_000); // the work
        $lock->renew();
        $redis->set('example:count', $n);
        echo "count $n with the fencing token $lock->token\n";
    }, lease: 10, wait: 60);
}
