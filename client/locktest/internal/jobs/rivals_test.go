// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

var (
	limit = client.WithLimit
	reads = client.WithShared()
	alone = client.WithOptions()
)

// brief is a lease that is not renewed.
func brief(d time.Duration) client.Option {
	return client.WithOptions(client.WithLease(d), client.WithoutRenewal())
}

// scene is where a scenario plays: two processes, and the lock x.
type scene struct {
	*testing.T
	s    *locktest.Server
	a, b *client.Client
}

// one is a, or b.
func (x scene) one(i int) *client.Client { return []*client.Client{x.a, x.b}[i%2] }

func (x scene) take(c *client.Client, opts ...client.Option) *client.Lock {
	x.Helper()
	return holding(x.T, c, "x", opts...)
}

// fill lets n take it in the same way.
func (x scene) fill(n int, opts ...client.Option) (all []*client.Lock) {
	x.Helper()
	for i := range n {
		all = append(all, x.take(x.one(i), opts...))
	}
	return all
}

func (x scene) free(locks ...*client.Lock) {
	x.Helper()
	for _, l := range locks {
		require.NoError(x, l.Release(ctx))
	}
}

// busy fails the test unless none of the two gets it.
func (x scene) busy(opts ...client.Option) {
	x.Helper()
	for i := range 2 {
		require.ErrorIs(x, x.one(i).TryDo(ctx, "x", nothing, opts...), client.ErrBusy)
	}
}

// held fails the test unless so many have it.
func (x scene) held(n int) {
	x.Helper()
	info, err := x.b.Inspect(ctx, "x")
	require.NoError(x, err)
	require.Equal(x, []int{n, n}, []int{info.Holds, len(slots(x.T, x.b, "x"))})
}

// after fails the test unless f takes that long. A client gives a lease up a hundredth and 2 ms before its end.
func (x scene) after(d time.Duration, f func()) {
	x.Helper()
	spend(x.T, d-150*time.Millisecond, d+100*time.Millisecond, f)
}

// scenarios have the names of those who play them: "who/test test; who/test". RLocks and RSemaphores are Redisson's,
// InterProcess locks Curator's, and DistributedLocks madelson's. Sidekiq's limiter is not open: those names are words of
// its manual, and throttled is what the specification of sidekiq-throttled says.
var scenarios = []struct {
	names string
	play  func(x scene)
}{
	{`RPermitExpirableSemaphore/testExpire testExpireTryAcquire testReleaseExpired testTryReleaseManyExpired;
		RReadWriteLock/testExpireWrite testWriteLockExpiration testWriteRead testReadLockLeaseTimeoutDiffThreadsWRR;
		Laravel-funnel/testItFailsAfterRetryTimeout testItFailsImmediatelyOrRetriesForAWhileBasedOnAGivenTimeout testItReleasesLockIfTaskTookTooLong
		testFunnelTimeoutExceptionWithoutFailureCallback testFunnelWithFailureCallback testFunnelFailureCallbackReceivesException;
		DistributedLock/TestTimeouts; Sidekiq-limiter/wait_timeout policy; throttled/invalidates-expired ttl lost_job_threshold`, func(x scene) {
		for _, k := range [][2]client.Option{{limit(1), limit(1)}, {alone, reads}, {reads, alone}} {
			first := x.take(x.a, k[0], brief(2*time.Second))
			_, err := x.a.TryAcquire(first.Context(), "x", k[0], brief(time.Second)) // makes it no shorter
			require.NoError(x, err)
			x.busy(k[1])
			x.after(time.Second, func() {
				err := x.b.Do(ctx, "x", func(context.Context) error { panic("without the lock") }, k[1], client.WithMaxWait(time.Second))
				require.ErrorIs(x, err, client.ErrTimeout)
			})
			x.after(time.Second, func() { x.free(x.take(x.b, k[1], client.WithMaxWait(2*time.Second))) })
			require.ErrorIs(x, first.Release(ctx), client.ErrExpired)
		}
	}},
	{`RPermitExpirableSemaphore/testNotExistent testAvailablePermits testAcquiredPermits testReleaseManyExpiredDoesNotThrow testExpiration;
		RSemaphore/testReleaseAcquire; InterProcessSemaphoreV2/testGetParticipantNodes; throttled/count;
		DistributedSemaphore/TestGetCurrentCountAsync TestGetCurrentCountSync TestGetCurrentCountReflectsAcquisitionsAndReleases`, func(x scene) {
		x.held(0)
		two := x.fill(2, limit(9))
		x.fill(3, limit(9), brief(100*time.Millisecond))
		x.held(5)
		x.free(two[0])
		x.held(4)
		time.Sleep(250 * time.Millisecond)
		x.take(x.a, limit(9), brief(100*time.Millisecond))
		x.held(2)
		x.free(two[1])
		time.Sleep(250 * time.Millisecond)
		x.held(0)
		left, err := x.b.Redis().Do(ctx, x.b.Redis().B().Exists().Key("lock:x").Build()).AsInt64()
		require.NoError(x, err)
		require.Zero(x, left)
	}},
	{`RPermitExpirableSemaphore/testBlockingAcquire testTryAcquire; RSemaphore/testBlockingAcquire; InterProcessSemaphoreV2/testSimple testSimple2;
		DistributedLock/BasicTest BasicAsyncTest TestCrossProcess TestLockNamesAreCaseSensitive TestGetSafeLockNameIsCaseSensitive;
		DistributedSemaphore/TestDrain; Laravel-funnel/testItLocksTasksWhenNoSlotAvailable testFunnelIndependentKeys;
		Sidekiq-limiter/size-1 within-milliseconds; throttled/limit-exceeded limit-not-exceeded finalize! key_suffix`, func(x scene) {
		for _, n := range []int{1, 4} {
			all := x.fill(n, limit(n))
			x.busy(limit(n))
			require.NoError(x, x.b.TryDo(ctx, "X", nothing, limit(n)))
			time.AfterFunc(time.Second/2, func() { x.free(all[0]) })
			spend(x.T, time.Second/2, 503*time.Millisecond, func() { all[0] = x.take(x.b, limit(n), client.WithMaxWait(time.Second)) })
			x.busy(limit(n))
			require.Equal(x, 1, all[0].Slot())
			x.free(all...)
		}
	}},
	{`DistributedLock/CancellationTest TestCanceledAlreadyThrowsForSyncAndDoesNotThrowForAsync; InterProcessSemaphoreV2/testInterruptAcquire`, func(x scene) {
		first, over := x.take(x.a, limit(1)), make(chan error)
		within, cancel := context.WithCancel(ctx)
		go func() { over <- x.b.Do(within, "x", nothing, limit(1)) }()
		queued(x.s, "x", 1)
		cancel()
		require.ErrorIs(x, <-over, context.Canceled)
		queued(x.s, "x", 0)
		require.ErrorIs(x, x.b.Do(within, "x", nothing, limit(2)), context.Canceled)
		x.free(first)
		x.free(x.take(x.b, limit(1)))
	}},
	{`RPermitExpirableSemaphore/testUpdateLeaseTime testGetLeaseTime`, func(x scene) {
		l := x.take(x.a, limit(1), brief(time.Second))
		time.Sleep(100 * time.Millisecond)
		require.LessOrEqual(x, l.Remaining(), 900*time.Millisecond)
		require.NoError(x, l.RenewFor(ctx, 3*time.Second))
		time.Sleep(2800 * time.Millisecond)
		x.busy(limit(1))
		time.Sleep(500 * time.Millisecond)
		require.ErrorIs(x, l.RenewFor(ctx, 2*time.Second), client.ErrExpired)
		require.Zero(x, l.Remaining())
		x.held(0)
	}},
	{`RPermitExpirableSemaphore/testSetPermits testAddPermits; RSemaphore/testAddPermits testReducePermits; throttled/dynamic-limit;
		DistributedSemaphore/TestGetCurrentCountNeverNegativeWhenOverReleased`, func(x scene) {
		five := x.fill(5, limit(5))
		x.busy(limit(5))
		x.free(x.take(x.b, limit(6)))
		x.free(five[:2]...)
		x.busy(limit(3))
		x.free(five[2])
		x.take(x.b, limit(3))
		x.busy(limit(3))
		x.held(3)
	}},
	{`RPermitExpirableSemaphore/testConcurrency_SingleInstance testConcurrencyLoop_MultiInstance;
		RSemaphore/testConcurrency_SingleInstance testConcurrencyLoop_MultiInstance testConcurrency_MultiInstance_1_permits;
		InterProcessSemaphoreV2/testThreads testRelease1AtATime testReleaseInChunks; Sidekiq-limiter/within_limit;
		DistributedLock/TestParallelism; DistributedSemaphore/TestConcurrencyHandling TestSemaphoreParallelism`, func(x scene) {
		for n, rounds := range map[int]int{1: 10, 3: 16, 10: 5} {
			var c crowd
			var work sync.WaitGroup
			for i := range 8 * n {
				work.Go(func() {
					for range rounds {
						l := x.take(x.one(i), limit(n))
						c.enter(l)
						time.Sleep(time.Duration(i%8) * time.Millisecond)
						c.leave(l)
						x.free(l)
					}
				})
			}
			work.Wait()
			require.Empty(x, c.wrong)
			require.Equal(x, n, c.most)
			require.Len(x, c.tokens, 8*n*rounds)
			x.s.Free("x")
		}
	}},
	{`RReadWriteLock/testConcurrency_SingleInstance testConcurrencyLoop_MultiInstance testConcurrency_MultiInstance;
		InterProcessReadWriteLock/testBasic; RSemaphore/testConcurrencyLoopMax_MultiInstance`, func(x scene) {
		for _, kind := range []client.Option{reads, limit(1000)} {
			var c crowd
			var work sync.WaitGroup
			written := 0
			for i := range 9 {
				work.Go(func() {
					for range 20 {
						if i < 6 {
							l := x.take(x.one(i), kind)
							c.enter(l)
							seen := written
							time.Sleep(3 * time.Millisecond)
							require.Equal(x, seen, written)
							c.leave(l)
							x.free(l)
							continue
						}
						l := x.take(x.one(i))
						require.Zero(x, client.Slot(l.Context()))
						written++
						require.Empty(x, c.slots)
						time.Sleep(time.Millisecond)
						x.free(l)
					}
				})
			}
			work.Wait()
			require.Empty(x, c.wrong)
			require.Greater(x, c.most, 2)
			require.Equal(x, 60, written)
		}
	}},
	{`RReadWriteLock/testMultiRead; DistributedReaderWriterLock/TestMultipleReadersSingleWriter TestWriterTrumpsReader`, func(x scene) {
		readers := x.fill(2, reads)
		x.busy(alone)
		writer := waits(x.s, x.b, "x", 1)
		x.busy(reads)
		require.ErrorContains(x, x.b.TryDo(ctx, "x", nothing, reads), ", 1 waiting")
		err := x.a.Do(ctx, "x", nothing, reads, client.WithMaxWait(time.Second))
		require.ErrorContains(x, err, "(held by others, shared, place 2 in line)")
		x.free(readers[0])
		synctest.Wait()
		require.Empty(x, writer)
		x.free(readers[1])
		l := <-writer
		x.busy(alone)
		x.free(l)
		x.free(x.take(x.a))
	}},
	{`RReadWriteLock/testWriteLock testWR testWriteReadReentrancy testReadLockIsLocked testInCluster;
		InterProcessReadWriteLock/testThatDowngradingRespectsThreads testDowngrading testContendingDowngrading`, func(x scene) {
		outer := x.take(x.a)
		inner, err := x.a.TryAcquire(outer.Context(), "x", reads, client.WithLockContext(ctx))
		require.NoError(x, err)
		for range 2 { // whichever hold is released first
			x.busy(reads)
			x.busy(alone)
			require.ErrorIs(x, x.a.Do(ctx, "x", nothing, reads, client.WithMaxWait(5*time.Second)), client.ErrTimeout)
			require.NoError(x, inner.Context().Err())
			_ = outer.Release(ctx)
		}
		x.free(inner)
		x.free(x.fill(2, reads)...)
	}},
	{`RReadWriteLock/testReadLockExpiration testReadLockLeaseTimeout testReadLockLeaseTimeoutDiffThreadsRRW testExpireRead`, func(x scene) {
		long, short := x.take(x.a, reads, brief(10*time.Second)), x.take(x.b, reads, brief(3*time.Second))
		time.AfterFunc(2800*time.Millisecond, func() { x.free(short) })
		time.AfterFunc(9100*time.Millisecond, func() { x.free(long) })
		x.after(9100*time.Millisecond, func() { x.free(x.take(x.b, brief(10*time.Second))) })
		long = x.take(x.a, reads, brief(10*time.Second))
		time.Sleep(5 * time.Second)
		x.after(0, func() { x.free(x.take(x.b, reads, brief(10*time.Second))) })
		x.after(5*time.Second, func() { x.take(x.b, client.WithMaxWait(10*time.Second)) })
		require.ErrorIs(x, long.Release(ctx), client.ErrExpired)
	}},
	{`RReadWriteLock/testReadLockExpirationRenewal testReadWriteTTL; DistributedReaderWriterLock/TestCanExtendReadLock;
		DistributedSemaphore/TestCanExtendLock`, func(x scene) {
		for _, kind := range []client.Option{reads, limit(10)} {
			all := x.fill(10, kind)
			writer := waits(x.s, x.b, "x", 1)
			for range 8 {
				time.Sleep(5 * time.Second)
				for _, l := range all {
					require.Greater(x, l.Remaining(), 19*time.Second)
				}
			}
			require.Empty(x, writer)
			x.free(all...)
			x.free(<-writer)
		}
	}},
	{`RReadWriteLock/testReentrancy testHoldCount; InterProcessReadWriteLock/testThatUpgradingIsDisallowed`, func(x scene) {
		none := client.ErrArgument
		for _, k := range []struct {
			outer, inner client.Option
			want         error
		}{
			{alone, limit(2), nil}, {alone, reads, nil}, {limit(2), limit(1), nil}, {limit(2), alone, none}, {limit(2), reads, none},
			{reads, reads, nil}, {reads, alone, none}, {reads, limit(2), none},
		} {
			outer := x.take(x.a, k.outer)
			for _, acquire := range []func(context.Context, string, ...client.Option) (*client.Lock, error){x.a.Acquire, x.a.TryAcquire} {
				inner, err := acquire(outer.Context(), "x", k.inner)
				require.ErrorIs(x, err, k.want)
				if err == nil {
					require.Equal(x, []any{outer.Slot(), outer.Fence()}, []any{inner.Slot(), inner.Fence()})
					x.free(inner)
				}
			}
			x.held(1)
			require.NoError(x, outer.Context().Err())
			x.free(outer)
			x.s.Free("x")
		}
		outer := x.take(x.a, limit(2))
		another, err := x.a.Acquire(outer.Context(), "x", limit(2), client.WithoutReentry())
		require.NoError(x, err)
		require.Equal(x, []int{1, 2, 0}, []int{client.Slot(outer.Context()), client.Slot(another.Context()), client.Slot(ctx)})
	}},
	{`RReadWriteLock/testAutoExpire testMultiInstanceReadLockZombieCleanup; Sidekiq-limiter/lock_timeout;
		DistributedLock/TestCrossProcessAbandonment TestCrossProcessAbandonmentWithKill TestHandleLostTriggersCorrectly
		TestHandleLostReturnsAlreadyCanceledIfHandleAlreadyLost; InterProcessReadWriteLock/testLockPath; InterProcessSemaphoreV2/testClientClose`, func(x scene) {
		for _, k := range []struct {
			lost, next client.Option
			beside     time.Duration // so long another one has it too
		}{{limit(2), alone, 5 * time.Second}, {reads, alone, 5 * time.Second}, {alone, reads, 0}, {limit(2), limit(2), time.Minute}} {
			for why, end := range map[error]func(*client.Client){client.ErrClosed: (*client.Client).Close, client.ErrExpired: func(c *client.Client) { x.s.Cut(c) }} {
				dead, lives := x.s.Client(client.Config{}), make(chan struct{})
				lost := x.take(dead, k.lost)
				if k.beside > 0 {
					l := x.take(x.a, k.lost)
					time.AfterFunc(k.beside, func() { x.free(l); close(lives) })
				} else {
					close(lives)
				}
				end(dead)
				spend(x.T, 29*time.Second, 32*time.Second, func() { x.free(x.take(x.b, k.next)) })
				require.ErrorIs(x, context.Cause(lost.Context()), why)
				x.s.Restore(dead)
				<-lives
			}
		}
	}},
	{`RReadWriteLock/testForceUnlock testIsHeldByCurrentThread testIsHeldByCurrentThreadOtherThread testIsLocked testIsLockedOtherThread testLockUnlock;
		RPermitExpirableSemaphore/testReleaseWithoutPermits; RSemaphore/testReleaseIfExists; DistributedLock/TestDisposeHandleIsIdempotent;
		RPermitExpirableSemaphore/testAcquire; DistributedLock/TestCanSafelyDisposeWhileMonitoring; throttled/reset!`, func(x scene) {
		for _, kind := range []client.Option{reads, limit(2), alone, reads} {
			for again, end := range map[error]func(*client.Lock) error{
				client.ErrNotHeld: func(l *client.Lock) error { return l.Release(ctx) },
				client.ErrBroken:  func(*client.Lock) error { _, err := x.a.Break(ctx, "x", "by hand"); return err },
			} {
				x.held(0)
				l := x.take(x.a, kind)
				x.held(1)
				require.NoError(x, l.Context().Err())
				require.Equal(x, []int64{l.Fence(), 0}, []int64{client.Fence(l.Context()), client.Fence(ctx)})
				require.NoError(x, end(l))
				<-l.Context().Done()
				next := x.take(x.b, kind)
				require.ErrorIs(x, l.Release(ctx), again)
				x.held(1)
				x.free(next)
			}
		}
	}},
	{`InterProcessReadWriteLock/testGetParticipantNodes testSetNodeData`, func(x scene) {
		readers := x.fill(250, reads, client.WithLabel("data")) // more than one call lists
		for n := range 8 {
			waits(x.s, x.s.Client(client.Config{}), "x", n+1)
		}
		x.free(readers[3])
		x.held(249)
		all, err := x.b.Holders(ctx, "x")
		require.NoError(x, err)
		last, says := readers[249], all[248]
		require.Equal(x, []any{250, last.Owner(), "data", last.Fence()}, []any{says.Slot, says.Holder.Owner, says.Holder.Label, says.Fence})
		info, err := x.b.InspectCached(ctx, "x")
		require.NoError(x, err)
		require.Equal(x, []any{249, "shared", last.Fence()}, []any{info.Holds, info.Why, info.Fence})
	}},
	{`InterProcessSemaphoreV2/testNoOrphanedNodes testAcquireAfterLostServer testKilledServerWithEnsembleProvider testCluster`, func(x scene) {
		for _, fault := range []func(){x.s.Stop, x.s.Forget, func() { x.s.Failover() }, func() { x.s.Delete("x") }} {
			first, next := x.take(x.a, limit(1)), waits(x.s, x.b, "x", 1, limit(1))
			fault()
			time.Sleep(time.Second)
			x.s.Start()
			_ = first.Release(ctx) // a server that has forgotten it knows nothing of it
			x.free(<-next)
			x.s.Free("x")
			x.free(x.take(x.a, limit(1)))
		}
	}},
	{`Laravel-funnel/testItReleasesLockAfterTaskFinishes testItReleasesIfErrorIsThrown testFunnelBasicHappyPath
		testFunnelReleasesLockAfterCallback testFunnelLockReleasedOnException testFunnelMethodOnRepository; Laravel-throttle/testItReturnsTheCallbackResult`, func(x scene) {
		for _, wrong := range []error{nil, nil, errors.New("wrong"), nil} {
			got, err := client.TryValue(ctx, x.a, "x", func(context.Context) (string, error) { return "hello", wrong }, limit(1))
			require.Equal(x, []any{"hello", wrong}, []any{got, err})
			require.Panics(x, func() { _ = x.b.TryDo(ctx, "x", func(context.Context) error { panic("wrong") }, limit(1)) })
		}
		mine := errors.New("of the caller's own")
		err := x.a.Do(ctx, "x", func(context.Context) error { x.s.Delete("x"); return mine })
		require.True(x, errors.Is(err, mine) && errors.Is(err, client.ErrLost), "%v", err)
	}},
	{`Laravel-throttle/testItLocksTasksWhenNoSlotAvailable testItFailsImmediatelyOrRetriesForAWhileBasedOnAGivenTimeout
		testAcquireSetsDecaysAtAndRemaining testTooManyAttemptsReportsCorrectly testAcquireResetsAfterDecay testClearResetsLimiter`, func(x scene) {
		ran := func(want bool) time.Duration {
			run, err := x.s.Client(client.Config{}).Once(ctx, "x", time.Minute, nothing, limit(2))
			require.NoError(x, err)
			require.Equal(x, []bool{want, want}, []bool{run.Ran, run.By != client.Holder{}})
			require.Positive(x, run.End)
			require.LessOrEqual(x, run.End, time.Minute)
			time.Sleep(time.Second)
			return run.End
		}
		for range 3 {
			ran(true)
			ran(true)
			time.Sleep(ran(false)) // no earlier: until the first lease would have ended
			time.Sleep(ran(false))
		}
		ran(true)
		ran(true)
		_, err := x.b.Break(ctx, "x", "clear")
		require.NoError(x, err)
		ran(true)
	}},
	{`DistributedLock/TestBadArguments; DistributedReaderWriterLock/TestReaderWriterLockBadArguments TestValidatesConstructorParameters;
		DistributedSemaphore/TestValidatesConstructorParameters`, func(x scene) {
		for text, opt := range map[string]client.Option{
			"limit must be from 1 to 1000, not 0":    limit(0),
			"limit must be from 1 to 1000, not -1":   limit(-1),
			"limit must be from 1 to 1000, not 1001": limit(1001),
			"combined with WithOwner":                client.WithOptions(client.WithOwner("o"), reads),
			"WithLimit and WithShared cannot":        client.WithOptions(limit(3), client.WithOwner("o")),
			"MaxWait must":                           client.WithOptions(reads, client.WithMaxWait(-2*time.Second)),
		} {
			err := x.a.Do(ctx, "x", nothing, opt)
			require.ErrorIs(x, err, client.ErrArgument)
			require.ErrorContains(x, err, text)
		}
		require.ErrorIs(x, x.a.Do(ctx, "", nothing, reads), client.ErrArgument)
		for why, opt := range map[string]client.Option{"limited": client.WithOptions(reads, limit(1000)), "shared": client.WithOptions(limit(0), reads)} {
			l := x.take(x.a, opt)
			require.ErrorContains(x, x.b.TryDo(ctx, "x", nothing), "held by others, "+why, "the last one counts")
			x.free(l)
		}
	}},
	{`DistributedSemaphore/TestHighTicketCount TestName; DistributedReaderWriterLock/TestName; DistributedLock/TestGetSafeName; RReadWriteLock/testName`, func(x scene) {
		for _, name := range []string{strings.Repeat("o", 1000), "\x00\U0001F409\u6C49\u5B57\b\r\n\\", "{test}:abc:key"} {
			for range 100 {
				holding(x.T, x.a, name, limit(1000))
			}
			require.Len(x, slots(x.T, x.b, name), 100)
		}
	}},
	{`DistributedLock/TestAcquireWithLockPrefix; RPermitExpirableSemaphore/testGetInClusterNameMapper`, func(x scene) {
		holding(x.T, x.s.Client(client.Config{Prefix: "P"}), "N", limit(1))
		whole := x.s.Client(client.Config{Prefix: "c:", NoPrefix: true})
		require.ErrorIs(x, whole.TryDo(ctx, "PN", nothing, limit(1)), client.ErrBusy)
		require.NoError(x, whole.TryDo(ctx, "N", nothing, limit(1)))
	}},
	{`DistributedLock/TestLockAbandonment; DistributedReaderWriterLock/TestReadLockAbandonment`, func(x scene) {
		for _, kind := range []client.Option{alone, reads, limit(1)} {
			within, cancel := context.WithCancel(ctx)
			l, err := x.a.Acquire(within, "x", kind)
			require.NoError(x, err)
			cancel()
			x.after(20*time.Second, func() { x.free(x.take(x.b)) })
			require.ErrorIs(x, l.Release(ctx), client.ErrAbandoned)
		}
	}},
}

// What other semaphores and read-write locks test is so here too. docs/migrating.md says what is meant to differ. A
// scenario of several names is played once.
func TestRivals(t *testing.T) {
	t.Parallel()
	for _, c := range scenarios {
		played, passed := false, false
		for group := range strings.SplitSeq(c.names, ";") {
			who, tests, _ := strings.Cut(strings.TrimSpace(group), "/")
			for _, name := range strings.Fields(tests) {
				t.Run(who+"/"+name, func(t *testing.T) {
					if !played {
						played = true
						bubble(t, func(t *testing.T, s *locktest.Server) {
							c.play(scene{t, s, s.Client(client.Config{}), s.Client(client.Config{})})
						})
						passed = !t.Failed()
					}
					require.True(t, passed, "as the first of %s", c.names)
				})
			}
		}
	}
}
