package main

import (
	"context"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// soon bounds what the harness itself asks of a server.
const soon = 2 * time.Second

// probe sends one command to one server, which can be dead or paused: then it fails soon.
func probe(addr string, command ...string) (rueidis.RedisMessage, error) {
	replies, err := ask(addr, command)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return replies[0].ToMessage()
}

// ask sends commands over one connection.
func ask(addr string, commands ...[]string) ([]rueidis.RedisResult, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, Dialer: net.Dialer{Timeout: time.Second},
		ConnWriteTimeout: time.Second, PipelineMultiplex: -1, ForceSingleClient: true,
		AlwaysRESP2: true, DisableCache: true, DisableRetry: true,
	})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	var batch rueidis.Commands
	for _, command := range commands {
		batch = append(batch, c.B().Arbitrary(command...).Build())
	}
	return c.DoMulti(ctx, batch...), nil
}

// atOnce runs commands in a transaction.
func atOnce(addr string, commands ...[]string) error {
	all := append(append([][]string{{"MULTI"}}, commands...), []string{"EXEC"})
	replies, err := ask(addr, all...)
	if err != nil {
		return err
	}
	return replies[len(replies)-1].Error()
}

// tell is probe where only the error matters.
func tell(addr string, command ...string) error {
	_, err := probe(addr, command...)
	return err
}

// roleOf is master or slave, "" if a server does not answer.
func roleOf(addr string) string {
	fields, _ := infoOf(addr, "replication")
	return fields["role"]
}

// until looks at a condition until it holds. It returns false if that takes too long.
func until(within time.Duration, condition func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; {
		if condition() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		<-tick.C
	}
}
