package main

const usage = `holdfast loads the Holdfast library (Redis Functions) onto every primary of a deployment.

  holdfast load     load or upgrade it; a second run changes nothing
  holdfast verify   look at every node, replicas too, and name settings that can lose locks; writes nothing
  holdfast version  print the version in this command and those on the servers
  holdfast unload   delete it; locks that are held then end with their leases
  holdfast help     this text

Example:

  HOLDFAST_PASSWORD=... holdfast load --addr redis-1:6379,redis-2:6379 --user deployer --tls
  HOLDFAST_ADDR=rediss://deployer:...@redis-1:6379 holdfast load
  holdfast load --addr sentinel-1:26379,sentinel-2:26379 --sentinel-master mymaster

Where:
  --addr address              server; repeat it or separate by commas. For a cluster some of its nodes;
                              several single servers are each loaded. Default: $HOLDFAST_ADDR, else 127.0.0.1:6379.
                              host, host:port, redis://user:password@host:port, or rediss:// for TLS.
                              One URL's user and password count for all addresses
  --sentinel-master name      the addresses are sentinels, which watch a primary under this name

Who (flags can be seen by others: prefer the environment or a file, for URLs with a password too):
  --user name                 ACL user; its password is in $HOLDFAST_PASSWORD
  --password-file path        ... or in this file
  --sentinel-user name        user at the sentinels; its password is in $HOLDFAST_SENTINEL_PASSWORD
  --sentinel-password-file path

TLS (each of these but --tls implies it):
  --tls                       connect by TLS, with the system's certificate authorities
  --tls-ca path               trust the authorities in this PEM file instead
  --tls-cert path, --tls-key path   client certificate and its key, PEM
  --tls-server-name name      the name in the server's certificate, if it is not the address
  --tls-skip-verify           UNSAFE: accept any certificate, so anybody in between can read the password

How:
  --dry-run                   say what would be done, write nothing (load, unload)
  --force                     load over a newer library or over another's that has our names (load, unload)
  --json                      print one JSON object at the end, and no lines
  --timeout duration          for all of it (default 30s)

Exit codes:
  0  done, or nothing to do
  1  failed on some node, or could not connect
  2  wrong usage
  3  verify: not every node has this library
  4  refused: a newer library, or another's under our names, is there; nothing was written

The user needs: +ping +role +function|list +function|load, in a cluster also +cluster|nodes +cluster|slots
+cluster|shards, to unload (or to force out another's library) also +function|delete; no keys, no channels.
To carry the memory of guarded locks over an upgrade it needs +fcall +time +info, and for verify to name
settings +config|get +info.
`
