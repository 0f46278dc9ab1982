#!/usr/bin/perl
# Driver for the clients of Perl; see README.md. Perl has no types to tell: what is defined is a string.
use strict;
use warnings;

sub redis {
    my ($class, $address) = @_;
    eval "require $class" or die $@;
    my $redis = $class->new(($address =~ m{^/} ? 'sock' : 'server') => $address, reconnect => 10);
    return {
        get  => sub { $redis->get(@_) },
        mget => sub { $redis->mget(@_) },
        lpop => sub { $redis->lpop(@_) },
        incr => sub { $redis->incr(@_) },
        set  => sub { $redis->set(@_) },
    };
}

sub memcached {
    my ($class, $address) = @_;
    eval "require $class" or die $@;
    my $memcached = $class->new({ servers => [ $address ] });
    return {
        get  => sub { $memcached->get(@_) },
        mget => sub { my $found = $memcached->get_multi(@_); map { $found->{$_} } @_ },
        incr => sub { $memcached->incr(@_) },
        set  => sub { $memcached->set(@_) ? 'OK' : \'false' },
    };
}

my %clients = (
    'Redis'                  => sub { redis('Redis', @_) },
    'Redis::Fast'            => sub { redis('Redis::Fast', @_) },
    'Cache::Memcached'       => sub { memcached('Cache::Memcached', @_) },
    'Cache::Memcached::Fast' => sub { memcached('Cache::Memcached::Fast', @_) },
);

sub field {
    my ($value) = @_;
    return !defined $value ? 'n:' : ref $value eq 'ARRAY' ? map { field($_) } @$value
        : ref $value ? "b:$$value" : "s:$value";
}

$| = 1;
my $verbs = $clients{ $ARGV[0] }->($ARGV[1]);
while (defined(my $line = <STDIN>)) {
    my ($verb, @args) = split ' ', $line;
    my @values = eval { $verbs->{$verb}->(@args) };
    my $error = $@;
    $error =~ s/\s+/ /g;
    print join("\t", $error ? "e:$error" : map { field($_) } @values ? @values : undef), "\n";
}
