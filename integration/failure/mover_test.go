package failure

import (
	"net"
	"strconv"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// mover moves slots between the primaries of a Cluster as redis-cli does, over connections that it
// keeps.
type mover struct {
	*bed
	primaries []*server.Node
	conns     map[*server.Node]rueidis.Client
	ids       map[*server.Node]string
	keys      int // how many were moved
}

func newMover(b *bed) *mover {
	b.TB.Helper()
	m := &mover{bed: b, conns: map[*server.Node]rueidis.Client{}, ids: map[*server.Node]string{}}
	m.primaries = b.D.Nodes()[:3]
	for _, n := range m.primaries {
		option := b.D.ClientOption()
		option.InitAddress, option.ForceSingleClient, option.DisableCache = []string{n.Addr}, true, true
		c, err := rueidis.NewClient(option)
		require.NoError(b.TB, err)
		b.TB.Cleanup(c.Close)
		m.conns[n] = c
		m.ids[n], err = m.at(n, "CLUSTER", "MYID").ToString()
		require.NoError(b.TB, err)
	}
	return m
}

// at sends a command to a node.
func (m *mover) at(n *server.Node, command ...string) *rueidis.RedisMessage {
	m.TB.Helper()
	c := m.conns[n]
	message, err := c.Do(m.Ctx, c.B().Arbitrary(command...).Build()).ToMessage()
	require.NoError(m.TB, err, "%v at %s", command, n.Addr)
	return &message
}

// move moves a slot and its keys. The others hear of it by gossip, if nobody tells them.
func (m *mover) move(slot uint16, source, target *server.Node) {
	m.TB.Helper()
	m.begin(slot, source, target)
	m.finish(slot, source, target)
}

// begin lets the target take keys of the slot: the source sends those there that it does not have.
func (m *mover) begin(slot uint16, source, target *server.Node) {
	m.TB.Helper()
	number := strconv.Itoa(int(slot))
	m.at(target, "CLUSTER", "SETSLOT", number, "IMPORTING", m.ids[source])
	m.at(source, "CLUSTER", "SETSLOT", number, "MIGRATING", m.ids[target])
}

// finish moves the keys, and then the slot. The target learns first that it is its own: so there is
// no moment at which nobody has it.
func (m *mover) finish(slot uint16, source, target *server.Node) {
	m.TB.Helper()
	number := strconv.Itoa(int(slot))
	host, port, err := net.SplitHostPort(target.Addr)
	require.NoError(m.TB, err)
	for {
		keys, err := m.at(source, "CLUSTER", "GETKEYSINSLOT", number, "10").AsStrSlice()
		require.NoError(m.TB, err)
		if len(keys) == 0 {
			break
		}
		// NOKEY, when they are gone meanwhile, is an answer too
		m.at(source, append([]string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}, keys...)...)
		m.keys += len(keys)
	}
	m.at(target, "CLUSTER", "SETSLOT", number, "NODE", m.ids[target])
	m.at(source, "CLUSTER", "SETSLOT", number, "NODE", m.ids[target])
}

// tell tells the primaries that took no part where a slot is.
func (m *mover) tell(slot uint16, source, target *server.Node) {
	m.TB.Helper()
	for _, n := range m.primaries {
		if n != source && n != target {
			m.at(n, "CLUSTER", "SETSLOT", strconv.Itoa(int(slot)), "NODE", m.ids[target])
		}
	}
}
