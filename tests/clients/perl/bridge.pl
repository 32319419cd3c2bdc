# Carries out requests, read as lines of JSON, with MR::Tarantool::Box. See bridge.py for the lines.
# Texts are byte strings: each character stands for the byte of its number.
# Usage: perl bridge.pl
use strict;
use warnings;

use JSON::PP;
use MR::Tarantool::Box;

my $json = JSON::PP->new->ascii->allow_nonref->canonical;

# One connection after the other: `connect`, requests, `disconnect`. The client connects with its first request.
my ($servers, $box);

sub refuse {
    my ($code, $message) = @_;
    $message =~ s/\0$//;
    return { error => { code => $code, message => $message } };
}

# What the client answered, or what the server refused.
sub done {
    my ($result) = @_;
    return refuse($box->Error, $box->ErrorStr) if $box->Error;
    return { result => $result };
}

# What a row is, and its fields are, the client has to be told: an array of numbers of fields for each index.
sub use_space {
    my ($space, $format, @indexes) = @_;
    $box = MR::Tarantool::Box->new({
        servers => $servers,
        name    => 'bridge',
        raise   => 0,
        timeout => 20,
        select_retry => 1,
        spaces  => [ {
            space   => $space,
            name    => 'space',
            format  => $format,
            indexes => [ map { { index_name => "index$_", keys => $indexes[$_] } } 0 .. $#indexes ],
            default_index => 'index0',
        } ],
    });
    return { result => JSON::PP::true };
}

sub ping {
    my $answer = $box->{server}->Chat1(msg => 65280, payload => '', unpack => sub { return "answer of $_[0]" });
    return { result => $answer->{ok} };
}

my %methods = (
    connect => sub {
        my ($host, $port) = @_;
        $servers = "$host:$port";
        return use_space(0, '&', [0]);
    },
    disconnect => sub { undef $box; return { result => JSON::PP::true } },
    ping       => \&ping,
    use        => \&use_space,
    store      => sub {
        my ($action, $row, $wanted) = @_;
        return done($box->Insert(@$row, { action => $action, want_result => $wanted }));
    },
    select => sub {
        my ($index, $keys, $limit, $offset) = @_;
        return done($box->Select($keys, { use_index => $index, limit => $limit, offset => $offset, want => 'arrayref' }));
    },
    update => sub {
        my ($key, $operations, $wanted) = @_;
        return done($box->UpdateMulti($key, @$operations, { want_result => $wanted }));
    },
    delete => sub {
        my ($key, $wanted) = @_;
        return done($box->Delete($key, { want_result => $wanted }));
    },
    call => sub {
        my ($name, $arguments, $format) = @_;
        return done($box->Call($name, $arguments, { unpack_format => $format }));
    },
);

# Texts of JSON have characters; what they stand for has bytes.
sub bytes {
    my ($value) = @_;
    return [ map { bytes($_) } @$value ] if ref $value eq 'ARRAY';
    utf8::downgrade($value) if defined $value && !ref $value && utf8::is_utf8($value);
    return $value;
}

$| = 1;
while (my $line = <STDIN>) {
    my ($method, @arguments) = @{ bytes($json->decode($line)) };
    my $answer = eval { $methods{$method}->(@arguments) } || refuse('fail', $@);
    print $json->encode($answer), "\n";
}
