// Package ids gives BIGINT primary keys from sidflake for database/sql, with redigo.
//
//	var keys = ids.New("tcp", "127.0.0.1:6380") // or "unix" and a path; one for the whole program
//
//	type Order struct {
//		ID    int64 `json:"id,string"` // JavaScript rounds such numbers, so JSON has strings
//		Total int64 `json:"total"`
//	}
//
//	id, err := keys.Next(ctx, "orders")
//	...
//	_, err = db.ExecContext(ctx, "INSERT INTO orders (id, total) VALUES (?, ?)", id, total)
//
// There is no rule about fork here: a program in Go has none that goes on with its memory.
package ids

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	size     = 100
	keep     = time.Second      // an ID has the time of its batch: what is left of an older one is thrown away
	patience = 10 * time.Second // a sidecar that restarts is waited for
)

var errNone = errors.New("no IDs: is it sidflake that listens there?")

type batch struct {
	ids   []int64
	until time.Time
}

// Source has the IDs that were taken and are not used yet. Goroutines may share it.
type Source struct {
	pool *redis.Pool
	lock chan struct{} // not a Mutex: who waits for it can give up
	left map[string]batch
}

// New does not connect yet.
func New(network, address string) *Source {
	return &Source{
		pool: &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
			return redis.Dial(network, address, redis.DialConnectTimeout(time.Second),
				redis.DialReadTimeout(2*time.Second), redis.DialWriteTimeout(2*time.Second))
		}},
		lock: make(chan struct{}, 1),
		left: map[string]batch{},
	}
}

// Next is a fresh ID.
func (s *Source) Next(ctx context.Context, name string) (int64, error) {
	select {
	case s.lock <- struct{}{}:
		defer func() { <-s.lock }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	b := s.left[name]
	if len(b.ids) == 0 || time.Now().After(b.until) {
		ids, err := s.take(ctx, name)
		if err != nil {
			return 0, err
		}
		b = batch{ids, time.Now().Add(keep)}
	}
	s.left[name] = batch{b.ids[1:], b.until}
	return b.ids[0], nil
}

// A batch. To ask again does no harm: IDs whose reply was lost are never given to others.
func (s *Source) take(ctx context.Context, name string) ([]int64, error) {
	end, pause := time.Now().Add(patience), 50*time.Millisecond
	for {
		ids, err := s.ask(name)
		if err == nil || !passing(err) || time.Now().Add(pause).After(end) {
			return ids, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if pause *= 2; pause > time.Second {
			pause = time.Second
		}
	}
}

func (s *Source) ask(name string) ([]int64, error) {
	c := s.pool.Get()
	defer c.Close()
	reply, err := c.Do("LPOP", "id:"+name, size)
	if err != nil {
		return nil, err
	}
	ids, err := redis.Int64s(reply, nil)
	if err != nil || len(ids) == 0 {
		return nil, errNone
	}
	return ids, nil
}

// Whether to ask again: no connection, no answer, -LOADING and -TRYAGAIN.
func passing(err error) bool {
	if refusal, ok := err.(redis.Error); ok {
		return strings.HasPrefix(string(refusal), "LOADING") || strings.HasPrefix(string(refusal), "TRYAGAIN")
	}
	return err != errNone
}
