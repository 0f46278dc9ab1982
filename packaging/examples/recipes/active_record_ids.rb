# frozen_string_literal: true

# BIGINT primary keys from sidflake for ActiveRecord 6.1 and later, with redis-rb.
#
#   create_table :orders, id: :bigint, default: nil do |t| # default: nil, or the database counts
#     t.integer :total, null: false
#   end
#
#   class Order < ApplicationRecord
#     include SidflakeId
#   end
#
# The key of a row is set before it is inserted, from `id:` and the name of its table. insert_all runs no
# callbacks: give its rows `id: Sidflake.next_id('orders')`. JavaScript rounds such numbers, so JSON has
# them as strings: that is serializable_hash below, in one line.

require 'active_support/concern'
require 'redis'

module Sidflake
  URL = ENV.fetch('IDS_URL', 'redis://127.0.0.1:6380') # or unix:///PATH
  BATCH = 100
  KEEP_S = 1.0 # an ID has the time of its batch: what is left of an older one is thrown away
  PATIENCE_S = 10.0 # a sidecar that restarts is waited for

  # The IDs that one process has taken and not used yet.
  class Batches
    attr_reader :pid

    def initialize
      @pid = Process.pid
      @lock = Mutex.new
      @left = {} # name => [IDs, until when]
      @redis = Redis.new(url: URL, connect_timeout: 1, timeout: 2, reconnect_attempts: 0)
    end

    def next(name)
      @lock.synchronize do
        ids, till = @left[name]
        if ids.nil? || ids.empty? || now > till
          ids = take(name)
          @left[name] = [ids, now + KEEP_S]
        end
        ids.shift
      end
    end

    private

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # A batch. To ask again does no harm: IDs whose reply was lost are never given to others.
    def take(name)
      till = now + PATIENCE_S
      pause = 0.05
      begin
        ids = @redis.lpop("id:#{name}", BATCH)
      rescue Redis::BaseError => e
        raise if !passing?(e) || now + pause > till

        sleep(pause)
        pause = [2 * pause, 1.0].min
        retry
      end
      raise KeyError, 'no IDs: is it sidflake that listens at IDS_URL?' if ids.nil? || ids.empty?

      ids.map { |id| Integer(id, 10) }
    end

    # Whether to ask again: no connection, no answer, -LOADING and -TRYAGAIN.
    def passing?(error)
      error.is_a?(Redis::BaseConnectionError) || error.message.start_with?('LOADING', 'TRYAGAIN')
    end
  end

  @batches = Batches.new

  # A fresh ID, an Integer, from any thread and process.
  def self.next_id(name)
    mine = @batches
    # A child of fork has a copy of its parent's batches, which the parent goes on to use, and of its
    # connection.
    mine = @batches = Batches.new if mine.pid != Process.pid
    mine.next(name)
  end
end

# For models: sets the key.
module SidflakeId
  extend ActiveSupport::Concern

  included do
    before_create { self.id ||= Sidflake.next_id(self.class.table_name) }
  end

  def serializable_hash(options = nil) = super.tap { |hash| hash['id'] = id.to_s if hash.key?('id') }
end
