# frozen_string_literal: true

# An application with ActiveRecord; it does what rows.py says.

require 'active_record'
require 'json'
require 'active_record_ids'

BEFORE = 40
CHILDREN = 3
THREADS = 3
ROWS = 40
PATIENCE_S = 45

class Order < ActiveRecord::Base
  include SidflakeId
end

# SQLite's own patience keeps Ruby's other threads from running, the one that has the lock among them.
module Patient
  def configure_connection
    super
    raw_connection.busy_handler { |n| sleep(0.005) && n < 4000 }
  end
end

def connect(database)
  ActiveRecord::Base.establish_connection(adapter: 'sqlite3', database: database, pool: THREADS + 1)
  ActiveRecord::ConnectionAdapters::SQLite3Adapter.prepend(Patient)
end

def in_threads
  threads = Array.new(THREADS) do
    Thread.new do
      Thread.current.report_on_exception = false # join raises it
      Order.connection_pool.with_connection { ROWS.times { Order.create!(total: 7) } }
    end
  end
  threads.each(&:join)
end

def halves(go)
  in_threads
  (PATIENCE_S / 0.02).to_i.times { File.exist?(go) ? break : sleep(0.02) }
  raise 'no sign to go on' unless File.exist?(go)

  in_threads
end

def write(database, go)
  connect(database)
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define do
    create_table(:orders, id: :bigint, default: nil) { |t| t.integer :total, null: false }
  end
  BEFORE.times { Order.create!(total: 7) }
  ActiveRecord::Base.connection_pool.disconnect!
  pids = Array.new(CHILDREN) { fork { halves(go) } }
  halves(go)
  raise 'a child failed' unless pids.map { |pid| Process.wait2(pid)[1].success? }.all?

  Order.all.to_json
end

if ARGV.empty?
  $stdin.each_line do
    puts "id #{Sidflake.next_id('orders')}"
  rescue StandardError => e
    puts "error #{e.class} #{e.message}"
  end
else
  database, go, json = ARGV
  File.write(json, write(database, go))
end
