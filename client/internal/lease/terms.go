package lease

import "time"

// Terms are what a lock is asked for with, as the server and its holder see it. They are comparable:
// a lock is passed on inside a process only between equal ones. A Terms is never written once it is
// in use.
type Terms struct {
	Length      time.Duration // how long the server keeps the lease after each renewal
	RenewEvery  time.Duration // from one renewal to the next; 0: it is never renewed
	MaxRenewals int           // the work is ended when one more would be due; 0: no limit
	MaxHold     time.Duration // the work is ended after this; 0: no limit
	Grace       time.Duration // from the end of the work to the release

	MinHold time.Duration // how long the key keeps the lock from others; 0: as long as it is held
	Guard   time.Duration // how long the server's memory must be unbroken before it grants; 0: any
	Longest time.Duration // the longest lease that may be asked for later

	Replicas    int           // how many must have each grant and each renewal; 0: none
	ReplicaWait time.Duration // how long the server waits for them

	Label string // shown with the owner

	// Length, Guard and MinHold as the library takes them; "" for 0.
	TTL, GuardText, MinHoldText string
}
