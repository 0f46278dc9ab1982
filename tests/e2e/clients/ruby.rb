#!/usr/bin/ruby
# frozen_string_literal: true

# Driver for the clients of Ruby; see README.md.

def redis(address)
  require 'redis'
  r = address.start_with?('/') ? Redis.new(path: address) : Redis.new(url: "redis://#{address}")
  { get: r.method(:get), mget: r.method(:mget), incr: r.method(:incr), set: r.method(:set),
    lpop: ->(key, n) { r.lpop(key, n.to_i) } }
end

def dalli(address)
  require 'dalli'
  require 'logger'
  Dalli.logger = Logger.new($stderr) # standard output has the answers
  c = Dalli::Client.new(address)
  { get: c.method(:get), incr: c.method(:incr),
    mget: ->(*keys) { found = c.get_multi(*keys); keys.map { |k| found[k] } },
    set: ->(key, value) { c.set(key, value) ? 'OK' : false } }
end

CLIENTS = { 'redis' => method(:redis), 'dalli' => method(:dalli) }.freeze

def field(value)
  case value
  when nil then 'n:'
  when Integer then "i:#{value}"
  when true, false then "b:#{value}"
  else "s:#{value}"
  end
end

def answer(verb, args)
  value = verb.call(*args)
  (value.is_a?(Array) ? value : [value]).map { |v| field(v) }.join("\t")
rescue StandardError => e
  "e:#{e.class} #{e.message.split.join(' ')}"
end

$stdout.sync = true
verbs = CLIENTS.fetch(ARGV[0]).call(ARGV[1])
while (line = $stdin.gets)
  verb, *args = line.split
  puts answer(verbs.fetch(verb.to_sym), args)
end
