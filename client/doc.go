// Package client is the Go client of Holdfast, a distributed lock for Redis 7+ and Valkey. The lock's logic is a library
// of Redis Functions, loaded at deploy time (see the loader package and the holdfast command); this package calls it.
//
//	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}, client.Config{})
//	...
//	err = c.Do(ctx, "order:42", func(ctx context.Context) error {
//		return ship(ctx, 42) // ctx ends when the lock is lost
//	})
//
// [Client.Do], [Value] and [Wrap] hold a lock while a function runs. [Client.Acquire] waits for a [Lock] and
// [Client.TryAcquire] does not; a Lock is renewed until its [Lock.Release], and its [Lock.Context] ends before another
// can be given the lock. [Lock.Fence] is the token for the resource that the lock guards. [Client.Inspect] tells who has a
// lock, [Client.Break] takes it away.
//
// Three things can be asked of every error: errors.Is with the Err variables for what happened, errors.As with
// [BusyError], [WaitError] and [LostError] for the data, and its text, which names operation and lock. An outage is
// [ErrUnreachable], never [ErrBusy].
package client
