// SPDX-License-Identifier: Apache-2.0

package redis

// Hooks watch the nodes. They are called with the node's mutex held: they must not block and must
// not call methods of the World or a Node. Those that are nil cost nothing.
type Hooks struct {
	// Write is called once per changed key after each command or function, also for expiry and on
	// replicas.
	Write func(Write)
	// Call is called after each function.
	Call func(Call)
	// Publish is called for each message that a node publishes or gets from another.
	Publish func(Published)
}

// Write is a change of a key. A nil hash is a key that is not there; a plain string has the one
// field "".
type Write struct {
	Node          *Node
	Key           string
	Before, After map[string]string
	End           int64 // when it expires, ms of the server's clock; 0: never
	Expired       bool  // deleted because its time was over
	Left          bool  // and the key's slot is another node's by now: it was a copy that nobody asks for
	Replica       bool  // the node is a replica
	NowUS         int64 // the server's clock
}

// Call is a run of a function.
type Call struct {
	Node       *Node
	Function   string
	Keys, Args []string
	Reply      any
	NowUS      int64 // the server's clock
}

// Published is a message at a node. Forwarded: another node published it.
type Published struct {
	Node             *Node
	Channel, Message string
	Receivers        int
	Forwarded        bool
}
