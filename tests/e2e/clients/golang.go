// Driver for the clients of Go; see README.md.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/gomodule/redigo/redis"
)

type verb func(args []string) (interface{}, error)

func redigo(address string) map[string]verb {
	network := "tcp"
	if address[0] == '/' {
		network = "unix"
	}
	pool := &redis.Pool{Dial: func() (redis.Conn, error) { return redis.Dial(network, address) }}
	do := func(command string) verb {
		return func(args []string) (interface{}, error) {
			c := pool.Get()
			defer c.Close()
			return c.Do(command, redis.Args{}.AddFlat(args)...)
		}
	}
	return map[string]verb{"get": do("GET"), "mget": do("MGET"), "lpop": do("LPOP"),
		"incr": do("INCR"), "set": do("SET")}
}

func gomemcache(address string) map[string]verb {
	c := memcache.New(address)
	return map[string]verb{
		"get": func(args []string) (interface{}, error) {
			item, err := c.Get(args[0])
			if err == memcache.ErrCacheMiss {
				return nil, nil
			} else if err != nil {
				return nil, err
			}
			return item.Value, nil
		},
		"mget": func(args []string) (interface{}, error) {
			items, err := c.GetMulti(args)
			values := make([]interface{}, len(args))
			for i, key := range args {
				if item := items[key]; item != nil {
					values[i] = item.Value
				}
			}
			return values, err
		},
		"incr": func(args []string) (interface{}, error) { return c.Increment(args[0], 1) },
		"set": func(args []string) (interface{}, error) {
			return "OK", c.Set(&memcache.Item{Key: args[0], Value: []byte(args[1])})
		},
	}
}

var clients = map[string]func(string) map[string]verb{"redigo": redigo, "gomemcache": gomemcache}

func field(value interface{}) string {
	switch v := value.(type) {
	case nil:
		return "n:"
	case int64, uint64:
		return fmt.Sprintf("i:%d", v)
	default:
		return fmt.Sprintf("s:%s", v)
	}
}

func answer(call verb, args []string) string {
	value, err := call(args)
	if err != nil {
		return "e:" + strings.Join(strings.Fields(err.Error()), " ")
	}
	values, many := value.([]interface{})
	if !many {
		values = []interface{}{value}
	}
	fields := make([]string, len(values))
	for i, v := range values {
		fields[i] = field(v)
	}
	return strings.Join(fields, "\t")
}

func main() {
	verbs := clients[os.Args[1]](os.Args[2])
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		words := strings.Fields(in.Text())
		fmt.Println(answer(verbs[words[0]], words[1:]))
	}
}
